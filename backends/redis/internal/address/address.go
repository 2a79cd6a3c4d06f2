// Package address reads the URLs by which a Redis store is named.
//
//	redis://[user[:password]@]host[:port][/db][?options]        one server
//	rediss://…                                                  the same over TLS
//	unix://[user[:password]@]/path/to/socket[?db=0&options]     one server, by its socket
//	redis+sentinel://[…@]host[:port][,host…]/master[/db]        the master that Sentinels name
//	redis+cluster://[…@]host[:port][,host…]                     a Cluster
//
// rediss+sentinel and rediss+cluster are the same over TLS. Options are
//
//	prefix=word              what all keys begin with (default "loophost")
//	timeout=5s               how long an answer may take
//	connections=64           how many connections are kept to one server
//	password_file=path       reads the password from a file, so that no command line shows it
//	sentinel_user=, sentinel_password_file=   what the Sentinels want, if they want it
//	ca_file=, cert_file=, key_file=, server_name=   TLS: whom to trust, and as whom to come
//
// Errors name the part that is wrong and never repeat the URL: it may hold a password.
package address

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Mode is what stands behind the address.
type Mode string

// The modes.
const (
	Single   Mode = "single"
	Sentinel Mode = "sentinel"
	Cluster  Mode = "cluster"
)

// Defaults of the options.
const (
	DefaultPrefix      = "loophost"
	DefaultTimeout     = 5 * time.Second
	DefaultConnections = 64
)

// Address is a parsed URL. Make one with Parse.
type Address struct {
	Mode   Mode
	TLS    bool
	Hosts  []string // host:port each; empty for a socket
	Socket string   // path of a Unix socket
	Master string   // of a Sentinel form
	DB     int

	User         string
	Password     Secret
	PasswordFile string

	SentinelUser         string
	SentinelPasswordFile string

	CAFile, CertFile, KeyFile, ServerName string

	Prefix      string
	Timeout     time.Duration
	Connections int
}

// Secret is a password; it prints as dots.
type Secret string

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "****"
}

// GoString keeps %#v from printing it.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// String is the address for people: neither user nor password nor options.
func (a Address) String() string {
	scheme := "redis"
	if a.TLS {
		scheme = "rediss"
	}
	switch a.Mode {
	case Sentinel:
		return fmt.Sprintf("%s+sentinel://%s/%s/%d", scheme, strings.Join(a.Hosts, ","), url.PathEscape(a.Master), a.DB)
	case Cluster:
		return fmt.Sprintf("%s+cluster://%s", scheme, strings.Join(a.Hosts, ","))
	}
	if a.Socket != "" {
		return fmt.Sprintf("unix://%s?db=%d", (&url.URL{Path: a.Socket}).EscapedPath(), a.DB)
	}
	return fmt.Sprintf("%s://%s/%d", scheme, strings.Join(a.Hosts, ","), a.DB)
}

// Schemes lists the schemes that Parse reads.
func Schemes() []string {
	return []string{"redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"}
}

// Parse reads a URL.
func Parse(raw string) (Address, error) {
	a := Address{Prefix: DefaultPrefix, Timeout: DefaultTimeout, Connections: DefaultConnections}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return Address{}, fmt.Errorf("it has no scheme; begin with one of %s", strings.Join(Schemes(), "://, ")+"://")
	}
	base, mode, _ := strings.Cut(scheme, "+")
	switch {
	case (base == "redis" || base == "rediss" || base == "unix") && scheme == base:
		a.Mode = Single
	case base != "unix" && (mode == string(Sentinel) || mode == string(Cluster)) && (base == "redis" || base == "rediss"):
		a.Mode = Mode(mode)
	default:
		return Address{}, fmt.Errorf("the scheme %q is unknown; use one of %s", scheme, strings.Join(Schemes(), ", "))
	}
	a.TLS = base == "rediss"
	if strings.Contains(rest, "#") {
		return Address{}, errors.New("it has a # in it; write %23 where a password or a name holds one")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	hosts, err := a.credentials(authority)
	if err != nil {
		return Address{}, err
	}
	if base == "unix" {
		err = a.socket(hosts, path)
	} else if err = a.hosts(hosts); err == nil {
		err = a.path(path)
	}
	if err != nil {
		return Address{}, err
	}
	if err := a.options(query, base == "unix"); err != nil {
		return Address{}, err
	}
	return a, nil
}

func (a *Address) credentials(authority string) (hosts string, err error) {
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return authority, nil
	}
	user, password, _ := strings.Cut(authority[:at], ":")
	if a.User, err = url.PathUnescape(user); err != nil {
		return "", errors.New("the user's name is not escaped well; write % as %25")
	}
	password, err = url.PathUnescape(password)
	if err != nil {
		return "", errors.New("the password is not escaped well; write % as %25")
	}
	a.Password = Secret(password)
	return authority[at+1:], nil
}

func (a *Address) socket(host, path string) error {
	if host != "" {
		return errors.New("a socket has a path and no host; write unix:///path/to/socket")
	}
	path, err := url.PathUnescape(path)
	if err != nil || path == "" || path == "/" || strings.ContainsRune(path, 0) {
		return errors.New("the path of the socket is missing or not escaped well; write unix:///path/to/socket")
	}
	a.Socket = path
	return nil
}

func (a *Address) hosts(list string) error {
	port := "6379"
	if a.Mode == Sentinel {
		port = "26379"
	}
	for _, h := range strings.Split(list, ",") {
		name, p, err := net.SplitHostPort(h)
		if err != nil {
			name, p = strings.TrimSuffix(strings.TrimPrefix(h, "["), "]"), port
			if strings.HasPrefix(h, "[") != strings.HasSuffix(h, "]") || !strings.HasPrefix(h, "[") && strings.Contains(h, ":") {
				return errors.New("a host is malformed; write host:port, and an IPv6 address in brackets")
			}
		}
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return errors.New("a port is no number from 1 to 65535")
		}
		if !isHost(name) {
			return errors.New("a host is empty or malformed; write host:port")
		}
		a.Hosts = append(a.Hosts, net.JoinHostPort(name, strconv.FormatUint(n, 10)))
	}
	if a.Mode == Single && len(a.Hosts) > 1 {
		return errors.New("it names several hosts; use redis+sentinel:// or redis+cluster:// for them")
	}
	return nil
}

// isHost reports whether name is an IP address or could be the name of a host.
func isHost(name string) bool {
	if strings.Contains(name, ":") {
		_, err := netip.ParseAddr(name)
		return err == nil && !strings.Contains(name, "%")
	}
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '-' && r != '_'
	})
}

func (a *Address) path(path string) error {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "" {
		parts = parts[1:]
	}
	if a.Mode == Sentinel {
		if len(parts) == 0 {
			return errors.New("the Sentinel form needs the master's name: redis+sentinel://host:26379/mymaster")
		}
		master, err := url.PathUnescape(parts[0])
		if err != nil || master == "" {
			return errors.New("the master's name is not escaped well")
		}
		a.Master, parts = master, parts[1:]
	}
	switch {
	case len(parts) == 0:
		return nil
	case a.Mode == Cluster:
		return errors.New("a Cluster has one database; leave the path empty")
	case len(parts) > 1:
		return errors.New("the path holds more than the number of a database")
	}
	return a.database(parts[0])
}

func (a *Address) database(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("the database is no number; write 0, or leave it out")
	}
	a.DB = int(n)
	return nil
}

func (a *Address) options(query string, socket bool) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the options behind ? are not escaped well")
	}
	text := map[string]*string{
		"prefix": &a.Prefix, "password_file": &a.PasswordFile,
		"sentinel_user": &a.SentinelUser, "sentinel_password_file": &a.SentinelPasswordFile,
		"ca_file": &a.CAFile, "cert_file": &a.CertFile, "key_file": &a.KeyFile, "server_name": &a.ServerName,
	}
	for name, v := range values {
		if len(v) != 1 || v[0] == "" {
			return fmt.Errorf("the option %q must be given once, with a value", printable(name))
		}
		to := text[name]
		switch {
		case to != nil:
			*to = v[0]
		case name == "timeout":
			if a.Timeout, err = time.ParseDuration(v[0]); err != nil || a.Timeout < 10*time.Millisecond {
				return errors.New("the option timeout must be a duration such as 5s, at least 10ms")
			}
		case name == "connections":
			n, err := strconv.ParseUint(v[0], 10, 16)
			if err != nil || n == 0 {
				return errors.New("the option connections must be a number from 1 to 65535")
			}
			a.Connections = int(n)
		case name == "db" && socket:
			if err := a.database(v[0]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the option %q is unknown", printable(name))
		}
	}
	return a.consistent()
}

// consistent refuses options that would be ignored.
func (a *Address) consistent() error {
	if strings.Trim(a.Prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") != "" || len(a.Prefix) > 64 {
		return errors.New("the option prefix must be 1 to 64 letters, digits, dashes, underscores, dots and colons")
	}
	for _, word := range []string{"record", "index", "rehearsal"} { // keys go on with them behind the prefix
		if strings.Contains(":"+a.Prefix+":", ":"+word+":") {
			return fmt.Errorf("the option prefix must not have %q between its colons; another store's keys could be the same", word)
		}
	}
	switch {
	case a.Password != "" && a.PasswordFile != "":
		return errors.New("it holds a password and names a file with one; choose one of them")
	case a.User != "" && a.Password == "" && a.PasswordFile == "":
		return errors.New("it names a user and no password; give one, or password_file=path")
	case !a.TLS && (a.CAFile != "" || a.CertFile != "" || a.KeyFile != "" || a.ServerName != ""):
		return errors.New("it has options of TLS, and its scheme is not rediss")
	case (a.CertFile == "") != (a.KeyFile == ""):
		return errors.New("cert_file and key_file go together")
	case a.Mode != Sentinel && (a.SentinelUser != "" || a.SentinelPasswordFile != ""):
		return errors.New("it has options of Sentinels, and its scheme does not say +sentinel")
	}
	return nil
}

// printable cuts an option's name, so that what was pasted there does not come back.
func printable(s string) string {
	const most = 20
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
