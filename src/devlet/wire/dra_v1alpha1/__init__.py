"""DRA v1alpha1, of drivers for Kubernetes 1.26: one claim per call, unprepared with what prepare answered."""
