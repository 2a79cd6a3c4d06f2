package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/loophost/loophost/backends/redis/internal/address"
)

// node is one server, or the one that Sentinels name, with what it promised when a
// connection to it was made last.
type node struct {
	*goredis.Client
	promise atomic.Pointer[promise]
}

// servers are the nodes behind an address.
type servers struct {
	mode    address.Mode
	single  *node                  // not of a Cluster
	cluster *goredis.ClusterClient // of a Cluster
	nodes   sync.Map               // *goredis.Client to *node, of a Cluster
}

// connect makes the client; it talks to nobody yet. probe is called on every new
// connection before anything else is sent over it.
func connect(a address.Address, password string, probe func(context.Context, *goredis.Conn, *node) error) (*servers, error) {
	o, err := options(a, password)
	if err != nil {
		return nil, err
	}
	s := &servers{mode: a.Mode}
	onConnect := func(n *node) func(context.Context, *goredis.Conn) error {
		return func(ctx context.Context, c *goredis.Conn) error { return probe(ctx, c, n) }
	}
	switch a.Mode {
	case address.Cluster:
		s.cluster = goredis.NewClusterClient(clusterOptions(a, o, func(each *goredis.Options) *goredis.Client {
			n := &node{}
			each.OnConnect = onConnect(n)
			each.MaxRetries = -1
			n.Client = goredis.NewClient(each)
			s.nodes.Store(n.Client, n)
			return n.Client
		}))
	case address.Sentinel:
		n := &node{}
		f := failoverOptions(a, o)
		if f.SentinelPassword, err = secretOf(a.SentinelPasswordFile); err != nil {
			return nil, err
		}
		f.OnConnect = onConnect(n)
		n.Client = goredis.NewFailoverClient(f)
		s.single = n
	default:
		n := &node{}
		o.OnConnect = onConnect(n)
		n.Client = goredis.NewClient(o)
		s.single = n
	}
	return s, nil
}

// options are what all forms share. Nothing is retried by the client: a commit that
// was cut off is the caller's to resolve (S-4).
func options(a address.Address, password string) (*goredis.Options, error) {
	secret := string(a.Password)
	if secret == "" && a.PasswordFile == "" {
		secret = password
	}
	if a.PasswordFile != "" {
		var err error
		if secret, err = secretOf(a.PasswordFile); err != nil {
			return nil, err
		}
	}
	o := &goredis.Options{
		Network: "tcp", Username: a.User, Password: secret, DB: a.DB,
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaxRetries: -1, DialerRetries: 1,
		DialTimeout: a.Timeout, ReadTimeout: a.Timeout, WriteTimeout: a.Timeout,
		PoolSize: a.Connections, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch {
	case a.Socket != "":
		o.Network, o.Addr = "unix", a.Socket
	default:
		o.Addr = a.Hosts[0]
	}
	if a.TLS {
		c, err := tlsConfig(a)
		if err != nil {
			return nil, err
		}
		o.TLSConfig = c
	}
	return o, nil
}

func failoverOptions(a address.Address, o *goredis.Options) *goredis.FailoverOptions {
	return &goredis.FailoverOptions{
		MasterName: a.Master, SentinelAddrs: a.Hosts, SentinelUsername: a.SentinelUser,
		Username: o.Username, Password: o.Password, DB: o.DB, Protocol: o.Protocol,
		DisableIdentity: true, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		PoolSize: o.PoolSize, PipelinePoolSize: -1, TLSConfig: o.TLSConfig,
	}
}

func clusterOptions(a address.Address, o *goredis.Options, client func(*goredis.Options) *goredis.Client) *goredis.ClusterOptions {
	return &goredis.ClusterOptions{
		Addrs: a.Hosts, NewClient: client, Username: o.Username, Password: o.Password, Protocol: o.Protocol,
		DisableIdentity: true, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		PoolSize: o.PoolSize, PipelinePoolSize: -1, TLSConfig: o.TLSConfig,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}

// secretOf reads a password from a file, without the line break at its end. "": none.
func secretOf(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("the file with the password can't be read: %w", err)
	}
	secret := strings.TrimRight(string(b), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("the file with the password, %s, is empty", name)
	}
	return secret, nil
}

func tlsConfig(a address.Address) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.ServerName}
	if c.ServerName == "" && a.Mode == address.Single {
		host, _, err := net.SplitHostPort(a.Hosts[0])
		if err != nil {
			return nil, fmt.Errorf("the host: %w", err)
		}
		c.ServerName = host
	}
	if a.CAFile != "" {
		b, err := os.ReadFile(a.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file can't be read: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("ca_file %s holds no certificate in PEM form", a.CAFile)
		}
	}
	if a.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("cert_file and key_file can't be used: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// of is the node that holds key.
func (s *servers) of(ctx context.Context, key string) (*node, error) {
	if s.cluster == nil {
		return s.single, nil
	}
	c, err := s.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.known(c)
}

// at is the node with an address that the Cluster named.
func (s *servers) at(ctx context.Context, addr string) (found *node, err error) {
	err = s.masters(ctx, func(_ context.Context, n *node) error {
		if n.Options().Addr == addr {
			found = n
		}
		return nil
	})
	if err == nil && found == nil {
		err = errors.New("no master has the address " + addr)
	}
	return found, err
}

// commands sends single commands wherever they belong. In a Cluster it may send one
// twice, so only what may be done twice goes through it.
func (s *servers) commands() goredis.Cmdable {
	if s.cluster != nil {
		return s.cluster
	}
	return s.single
}

func (s *servers) known(c *goredis.Client) (*node, error) {
	if v, ok := s.nodes.Load(c); ok {
		if n, ok := v.(*node); ok {
			return n, nil
		}
	}
	return nil, errors.New("the client made a connection of its own")
}

// masters calls do for each node that takes writes; one after the other.
func (s *servers) masters(ctx context.Context, do func(context.Context, *node) error) error {
	if s.cluster == nil {
		return do(ctx, s.single)
	}
	var mu sync.Mutex
	return s.cluster.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		n, err := s.known(c)
		if err != nil {
			return err
		}
		return do(ctx, n)
	})
}

func (s *servers) close() error {
	if s.cluster != nil {
		return s.cluster.Close()
	}
	return s.single.Close()
}

// pipeline sends many reads in one round trip to each node.
func (s *servers) pipeline() goredis.Pipeliner { return s.commands().Pipeline() }
