"""Publishing what devices a driver has, as ResourceSlices in the cluster."""
