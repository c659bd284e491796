package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// target is a collection of a server, and how requests to it look.
type target struct {
	url         string
	token       string
	contentType string
	accept      string
	gzip        bool
	roots       *x509.CertPool
}

func newTarget(o options) (target, error) {
	pem, err := os.ReadFile(o.ca)
	if err != nil {
		return target{}, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return target{}, fmt.Errorf("%s has no certificate", o.ca)
	}
	token, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return target{}, err
	}
	return target{
		url: strings.TrimSuffix(o.server, "/") + o.path, token: strings.TrimSpace(string(token)),
		contentType: o.contentType, accept: o.accept, gzip: o.gzip, roots: roots,
	}, nil
}

// connection is a client that keeps one connection. HTTP/1.1, because both sides speak it.
func (t target) connection() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: t.roots},
		MaxConnsPerHost:    1,
		DisableCompression: !t.gzip,
		ReadBufferSize:     64 << 10,
		WriteBufferSize:    64 << 10,
	}}
}

// do sends one request and returns an answer with the expected code; its body is the caller's to close.
func (t target) do(ctx context.Context, client *http.Client, verb, query string, body []byte, want int) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, verb, t.url+query, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+t.token)
	request.Header.Set("User-Agent", "bench-api")
	request.Header.Set("Accept", t.accept)
	if body != nil {
		request.Header.Set("Content-Type", t.contentType)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != want {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
		return nil, fmt.Errorf("%s answered %d, expected %d: %s", verb, answer.StatusCode, want, text)
	}
	return answer, nil
}

// drain reads an answer to its end, so that its connection can be used again.
func drain(answer *http.Response) (int64, error) {
	defer answer.Body.Close()
	return io.Copy(io.Discard, answer.Body)
}

func readBodies(path string) ([][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var bodies [][]byte
	for len(data) > 0 {
		if len(data) < 4 || uint64(len(data)-4) < uint64(binary.BigEndian.Uint32(data)) {
			return nil, fmt.Errorf("%s ends within body %d", path, len(bodies))
		}
		size := binary.BigEndian.Uint32(data)
		bodies = append(bodies, data[4:4+size])
		data = data[4+size:]
	}
	return bodies, nil
}
