"""The health of a DRA driver's devices, v1 and v1alpha1: the same messages under two service names."""
