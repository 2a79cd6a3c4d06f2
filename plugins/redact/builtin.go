package main

import "regexp"

// pattern is a built-in rule before it is compiled.
type pattern struct {
	name, expr string
	hints      []string
	fits       func(string) bool
}

// builtins are shapes that are secrets with great probability, the most telling
// first: what one has taken out, the next no longer sees.
var builtins = []pattern{
	{
		name: "private-key", hints: []string{"private key"},
		// A block that was cut off is a secret, too.
		expr: `(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`,
	},
	{name: "aws-access-key", hints: []string{"akia", "asia", "aroa", "aida"}, expr: `\b(?:AKIA|ASIA|AROA|AIDA)[A-Z2-7]{16}\b`},
	{
		name: "aws-secret-key", hints: []string{"aws"},
		expr: `(?i)\baws[a-z0-9_ .-]{0,20}(?:secret|key)[a-z0-9_ .-]{0,20}["']?\s*(?:=>|[:=])\s*["']?(?P<secret>[A-Za-z0-9/+]{40})\b`,
	},
	{name: "github-token", hints: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, expr: `\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b`},
	{name: "gitlab-token", hints: []string{"glpat-"}, expr: `\bglpat-[A-Za-z0-9_-]{20,}`},
	{name: "slack-token", hints: []string{"xox", "xapp-"}, expr: `\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}`},
	{name: "slack-webhook", hints: []string{"hooks.slack.com/"}, expr: `https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}`},
	{name: "google-api-key", hints: []string{"aiza"}, expr: `\bAIza[A-Za-z0-9_-]{35}`},
	{name: "stripe-key", hints: []string{"k_live_", "k_test_"}, expr: `\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}`},
	{name: "npm-token", hints: []string{"npm_"}, expr: `\bnpm_[A-Za-z0-9]{36}\b`},
	{name: "api-key", hints: []string{"sk-"}, expr: `\bsk-[A-Za-z0-9_-]{20,}`, fits: mixed},
	{name: "jwt", hints: []string{"eyj"}, expr: `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`},
	{name: "bearer-token", hints: []string{"bearer"}, expr: `(?i)\bbearer\s+(?P<secret>[A-Za-z0-9._~+/=-]{16,})`, fits: mixed},
	{name: "basic-auth", hints: []string{"basic"}, expr: `(?i)\bauthorization["']?\s*[:=]\s*["']?basic\s+(?P<secret>[A-Za-z0-9+/=]{8,})`},
	{name: "url-password", hints: []string{"://"}, expr: `\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'<>]{0,100}:(?P<secret>[^\s/@"'<>]{3,100})@`},
	{
		name: "assigned-secret", hints: []string{"key", "token", "secret", "passw"},
		expr: `(?i)(?:api[_-]?key|secret[_-]?key|access[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|password|passwd)["']?\s*(?:=>|:=|[:=])\s*["']?(?P<secret>[A-Za-z0-9_+/=~-]{16,})`,
		fits: mixed,
	},
}

// mixed asks for a letter and a digit: names of functions and variables in
// program text rarely have both in such length, secrets nearly always do.
func mixed(s string) bool {
	var letter, digit bool
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digit = true
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			letter = true
		}
	}
	return letter && digit
}

// compile makes a rule of a built-in pattern.
func (p pattern) compile() (rule, error) {
	re, err := regexp.Compile(p.expr)
	return rule{name: p.name, re: re, hints: p.hints, fits: p.fits}, err
}
