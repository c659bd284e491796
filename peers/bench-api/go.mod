module devlet.dev/peers/bench-api

go 1.26.0
