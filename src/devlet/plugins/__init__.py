"""Our end of the plugin sockets. Protobuf and gRPC stop here; inside, plugins are values and plain calls."""
