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

// screen is what the start screen tells.
type screen struct {
	Version string
	URL     string
	Listen  string // the address as it was bound
	Open    bool   // other machines can reach it
	State   string // where the records are
	Main    string // location of the warehouse main; empty: it was deleted
}

func (s screen) String() string {
	var b bytes.Buffer
	if err := screenTemplate.Execute(&b, s); err != nil {
		panic("server: start screen: " + err.Error())
	}
	return b.String()
}

// urlOf is how clients on this machine reach the listener: the host as it was
// configured, with the port that was bound.
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
