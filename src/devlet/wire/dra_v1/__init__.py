"""DRAPlugin v1: claims are prepared and unprepared in batches. Drivers of Kubernetes 1.34 and later."""
