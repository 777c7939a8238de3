package server

import (
	"bytes"
	_ "embed"
	"net"
	"net/netip"
	"text/template"
)

// screenText is what a person sees at start. It has to fit a screen of 80 columns
// and 40 lines.
//
//go:embed screen.txt
var screenText string

var screenTemplate = template.Must(template.New("screen").Parse(screenText))

// screen is the start screen of this server.
func (s *server) screen(version string) string {
	var b bytes.Buffer
	err := screenTemplate.Execute(&b, struct {
		Version, URL, Listen, Data, Main string
		Open                             bool
	}{version, s.url, s.listener.Addr().String(), s.dir.path, s.main, !s.config.Loopback()})
	if err != nil {
		panic("server: start screen: " + err.Error())
	}
	return b.String()
}

// urlOf is how clients on this machine reach the listener. A name that was
// configured is kept, because certificates and redirects may depend on it later;
// the port is the real one.
func urlOf(listen string, addr net.Addr) string {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		host = ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		panic("server: address of the listener: " + err.Error())
	}
	return "http://" + net.JoinHostPort(host, port)
}
