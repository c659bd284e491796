"""The kubelet's decisions: which pod gets which device, and when it is prepared and released."""
