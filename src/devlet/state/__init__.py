"""What a node remembers over a restart, in the kubelet's file formats. Codecs are pure; one module touches files."""
