package address

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	with := func(change func(*Address)) Address {
		a := Address{Mode: Single, Prefix: DefaultPrefix, Timeout: DefaultTimeout, Connections: DefaultConnections}
		change(&a)
		return a
	}
	for _, c := range []struct {
		name, url string
		want      Address
		text      string
	}{
		{"a host alone", "redis://example.org", with(func(a *Address) { a.Hosts = []string{"example.org:6379"} }), "redis://example.org:6379/0"},
		{"port and database", "redis://h:1234/5", with(func(a *Address) { a.Hosts, a.DB = []string{"h:1234"}, 5 }), "redis://h:1234/5"},
		{"an IPv6 address", "redis://[::1]:7000", with(func(a *Address) { a.Hosts = []string{"[::1]:7000"} }), "redis://[::1]:7000/0"},
		{"an IPv6 address without a port", "redis://[::1]", with(func(a *Address) { a.Hosts = []string{"[::1]:6379"} }), "redis://[::1]:6379/0"},
		{"user and password with escapes", "redis://u%40x:p%3A%2F%40@h", with(func(a *Address) {
			a.Hosts, a.User, a.Password = []string{"h:6379"}, "u@x", "p:/@"
		}), "redis://h:6379/0"},
		{"a password alone", "redis://:secret@h", with(func(a *Address) { a.Hosts, a.Password = []string{"h:6379"}, "secret" }), "redis://h:6379/0"},
		{"TLS", "rediss://h?ca_file=/ca.pem&cert_file=c&key_file=k&server_name=n", with(func(a *Address) {
			a.TLS, a.Hosts, a.CAFile, a.CertFile, a.KeyFile, a.ServerName = true, []string{"h:6379"}, "/ca.pem", "c", "k", "n"
		}), "rediss://h:6379/0"},
		{"a socket", "unix:///run/redis.sock?db=2", with(func(a *Address) { a.Socket, a.DB = "/run/redis.sock", 2 }), "unix:///run/redis.sock?db=2"},
		{"a socket with a user", "unix://u:p@/s", with(func(a *Address) { a.Socket, a.User, a.Password = "/s", "u", "p" }), "unix:///s?db=0"},
		{"Sentinels", "redis+sentinel://a,b:1/main/3?sentinel_user=s&sentinel_password_file=f", with(func(a *Address) {
			a.Mode, a.Hosts, a.Master, a.DB, a.SentinelUser, a.SentinelPasswordFile = Sentinel, []string{"a:26379", "b:1"}, "main", 3, "s", "f"
		}), "redis+sentinel://a:26379,b:1/main/3"},
		{"a Cluster over TLS", "rediss+cluster://a:1,b:2", with(func(a *Address) { a.Mode, a.TLS, a.Hosts = Cluster, true, []string{"a:1", "b:2"} }), "rediss+cluster://a:1,b:2"},
		{"options", "redis://h?prefix=x:y&timeout=250ms&connections=7&password_file=/p", with(func(a *Address) {
			a.Hosts, a.Prefix, a.Timeout, a.Connections, a.PasswordFile = []string{"h:6379"}, "x:y", 250*time.Millisecond, 7, "/p"
		}), "redis://h:6379/0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.url)
			if err != nil {
				t.Fatalf("got %v, want none", err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("address differs (-want +got):\n%s", d)
			}
			if got.String() != c.text {
				t.Errorf("text: got %q, want %q", got, c.text)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, url, want string }{
		{"no scheme", "localhost:6379", "no scheme"},
		{"another scheme", "http://h", `"http" is unknown`},
		{"a socket of a Cluster", "unix+cluster:///s", "is unknown"},
		{"a plus with nothing behind", "redis+://h", "is unknown"},
		{"no host", "redis://", "host is empty"},
		{"an empty host in a list", "redis+cluster://a,,b", "host is empty"},
		{"several hosts of one server", "redis://a,b", "redis+sentinel:// or redis+cluster://"},
		{"a port that is no number", "redis://h:x", "port is no number"},
		{"port 0", "redis://h:0", "port is no number"},
		{"an IPv6 address without brackets", "redis://::1", "brackets"},
		{"a database that is no number", "redis://h/x", "database is no number"},
		{"a path behind the database", "redis://h/0/1", "more than the number"},
		{"Sentinels without a master", "redis+sentinel://h", "master's name"},
		{"a database of a Cluster", "redis+cluster://h/1", "one database"},
		{"a socket with a host", "unix://h/s", "no host"},
		{"a socket without a path", "unix://", "path of the socket"},
		{"an unknown option", "redis://h?retries=3", `"retries" is unknown`},
		{"an option twice", "redis://h?prefix=a&prefix=b", "once"},
		{"an option without a value", "redis://h?prefix=", "with a value"},
		{"a prefix with a brace", "redis://h?prefix=%7Ba", "prefix"},
		{"a prefix that looks like keys of another", "redis://h?prefix=x:record", `"record"`},
		{"a timeout without a unit", "redis://h?timeout=5", "duration"},
		{"no connection", "redis://h?connections=0", "connections"},
		{"a password twice", "redis://:p@h?password_file=f", "choose one"},
		{"a user without a password", "redis://u@h", "no password"},
		{"options of TLS without it", "redis://h?ca_file=x", "rediss"},
		{"a certificate without its key", "rediss://h?cert_file=x", "go together"},
		{"options of Sentinels without them", "redis://h?sentinel_user=x", "+sentinel"},
		{"a password that is not escaped", "redis://:50%@h", "escaped"},
		{"a fragment", "redis://:pa#ss@h", "%23"},
		{"the database of a socket in other forms", "redis://h?db=1", `"db" is unknown`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.url)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want an error that says %q", got, err, c.want)
			}
		})
	}
}

func TestAPasswordIsNeverPrinted(t *testing.T) {
	a, err := Parse("redis://user:hunter2@h")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, a); strings.Contains(got, "hunter2") {
			t.Errorf("%s prints the password: %s", verb, got)
		}
	}
	for _, url := range []string{"redis://:hunter2@h:x", "http://:hunter2@h", "redis://:hunter2@h/x", "redis://:hunter2@h?a=b", "redis://:hunter2@", "redis:hunter2@h"} {
		if _, err := Parse(url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error without the password", url, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"redis://u:p@h:1/2?prefix=a", "unix:///s?db=1", "redis+sentinel://a,b:2/m/1", "rediss+cluster://[::1]:1,b", "redis://%zz@h", "redis://h?%zz", "rediss+cluster://[[00]", "unix:///a%3Fb?db=1", "redis+sentinel://h/a%2Fb",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, url string) {
		a, err := Parse(url)
		if err != nil {
			return
		}
		// What people see names the same server again.
		b, err := Parse(a.String())
		if err != nil {
			t.Fatalf("%q became %q, which is refused: %v", url, a, err)
		}
		if b.String() != a.String() || b.Mode != a.Mode || b.TLS != a.TLS || b.DB != a.DB {
			t.Fatalf("%q became %q and then %q", url, a, b)
		}
	})
}
