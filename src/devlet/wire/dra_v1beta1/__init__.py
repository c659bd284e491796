"""DRAPlugin v1beta1, and v1alpha4 with the same messages under another service name: v1 without shares."""
