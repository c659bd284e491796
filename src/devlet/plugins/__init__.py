"""The kubelet's end of the plugin sockets. Protobuf and gRPC stop here: callers see values and plain methods."""
