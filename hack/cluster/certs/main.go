// Command certs writes the keys and certificates of one throw-away cluster.
//
// It exists because Python's standard library cannot sign an X.509 certificate, while Go's can, and Go is here
// anyway to build the rest of the cluster.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 365 * 24 * time.Hour

// clients maps a file name to the identity that Kubernetes reads out of its certificate (user: CN, groups: O).
// The users of the control plane are those that the built-in RBAC bindings name. kwok plays every kubelet at once,
// for which there is no built-in role.
var clients = map[string]pkix.Name{
	"admin":              {CommonName: "admin", Organization: []string{"system:masters"}},
	"controller-manager": {CommonName: "system:kube-controller-manager"},
	"scheduler":          {CommonName: "system:kube-scheduler"},
	"kwok":               {CommonName: "kwok", Organization: []string{"system:masters"}},
}

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func main() {
	dir := flag.String("dir", "", "folder to write into")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "certs:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if dir == "" {
		return fmt.Errorf("-dir is required")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority(dir, "ca")
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		},
		// 10.96.0.1 is the first address of the service range: the "kubernetes" Service.
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 96, 0, 1)},
	}
	if err := ca.issue(dir, "apiserver", server); err != nil {
		return err
	}
	for name, subject := range clients {
		client := &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if err := ca.issue(dir, name, client); err != nil {
			return err
		}
	}
	if err := writeFrontProxy(dir); err != nil {
		return err
	}
	return writeServiceAccountKeys(dir)
}

// writeFrontProxy makes the authority that the API server proves itself by to the servers it aggregates. It must be
// another one than the cluster's: whoever holds its certificates may speak for any user.
func writeFrontProxy(dir string) error {
	ca, err := newAuthority(dir, "front-proxy-ca")
	if err != nil {
		return err
	}
	return ca.issue(dir, "front-proxy", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "front-proxy"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func newAuthority(dir, name string) (*authority, error) {
	key, err := newKey(dir, name)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "cronwright-cluster-" + name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
	}
	der, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if err := writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der, 0o644); err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key}, nil
}

func (ca *authority) issue(dir, name string, template *x509.Certificate) error {
	key, err := newKey(dir, name)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := sign(template, ca.certificate, key.Public(), ca.key)
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der, 0o644)
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(validity)
	return x509.CreateCertificate(rand.Reader, template, parent, public, signer)
}

func newKey(dir, name string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(filepath.Join(dir, name+".key"), "PRIVATE KEY", der, 0o600)
}

func writeServiceAccountKeys(dir string) error {
	key, err := newKey(dir, "service-account")
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, "service-account.pub"), "PUBLIC KEY", der, 0o644)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}
