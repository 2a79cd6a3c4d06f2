package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/loophost/loophost/host/store"
)

// certificates are those of an authority, and one for a server and a client that it signed.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		wantKind(t, "write", os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600), nil)
		return path
	}
	caKey := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	caCert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER := must[[]byte](t)(x509.CreateCertificate(rand.Reader, caCert, caCert, &caKey.PublicKey, caKey))
	ownKey := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	own := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"redis.test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	ownDER := must[[]byte](t)(x509.CreateCertificate(rand.Reader, own, caCert, &ownKey.PublicKey, caKey))
	keyDER := must[[]byte](t)(x509.MarshalECPrivateKey(ownKey))
	return write("ca.pem", "CERTIFICATE", caDER), write("cert.pem", "CERTIFICATE", ownDER), write("key.pem", "EC PRIVATE KEY", keyDER)
}

func TestTLS(t *testing.T) {
	ca, cert, certKey := certificates(t)
	port := freePort(t)
	startServer(t, "--tls-port", strconv.Itoa(port), "--tls-ca-cert-file", ca, "--tls-cert-file", cert, "--tls-key-file", certKey)
	base := "rediss://127.0.0.1:" + strconv.Itoa(port)
	client := "&cert_file=" + cert + "&key_file=" + certKey

	s := openStore(t, base+"?ca_file="+ca+client)
	f, mark := owner(t, s, key)
	must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(mark, "head", "over TLS")))
	openStore(t, base+"?server_name=redis.test&ca_file="+ca+client)

	for _, c := range []struct{ name, url string }{
		{"an authority that is not trusted", base + "?timeout=2s" + client},
		{"another server's name", base + "?server_name=other.test&ca_file=" + ca + client},
		{"no certificate of the client", base + "?timeout=2s&ca_file=" + ca},
		{"no TLS", "redis://127.0.0.1:" + strconv.Itoa(port) + "?timeout=2s"},
	} {
		wantKind(t, c.name, open(t, c.url), store.ErrUnavailable)
	}
	wantSaid(t, "a file that holds no certificate", open(t, base+"?ca_file="+certKey), store.ErrUnsupported, "no certificate")
}
