"""The cluster's decisions: claims, scheduling, clean-up. Meets `node` only through the cluster's objects."""
