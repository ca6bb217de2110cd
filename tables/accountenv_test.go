package tables_test

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestAccountFromEnv: one way is taken and named, more than one is refused.
func TestAccountFromEnv(t *testing.T) {
	const (
		connection = "AZURE_STORAGE_CONNECTION_STRING"
		name       = "AZURE_STORAGE_ACCOUNT"
		key        = "AZURE_STORAGE_KEY"
		sas        = "AZURE_STORAGE_SAS_TOKEN"
		mode       = "AZURE_STORAGE_AUTH_MODE"
	)
	values := map[string]string{connection: "AccountName=contoso;AccountKey=" + someKey, name: "contoso", key: someKey, sas: "?sv=1&sig=topsecret", mode: "login"}
	for _, tc := range []struct {
		set    []string
		source string // of success
		names  string // in the error
	}{
		{set: []string{connection}, source: connection + " (shared key)"},
		{set: []string{name, key}, source: key + " (shared key)"},
		{set: []string{name, sas}, source: sas + " (shared access signature)"},
		{set: []string{name, mode}, source: mode + "=login (token credential)"},
		{set: nil, names: connection},
		{set: []string{name}, names: key},
		{set: []string{key}, names: name},
		{set: []string{sas}, names: name},
		{set: []string{mode}, names: name},
		{set: []string{connection, name}, names: name},
		{set: []string{connection, key}, names: connection + " and " + key},
		{set: []string{connection, mode}, names: mode + "=login and " + connection},
		{set: []string{name, key, sas}, names: key + " and " + sas},
		{set: []string{name, key, mode}, names: mode + "=login and " + key},
		{set: []string{name, sas, mode}, names: mode + "=login and " + sas},
		{set: []string{connection, name, key, sas, mode}, names: "set only one of them"},
	} {
		for variable := range values {
			t.Setenv(variable, "")
		}
		for _, variable := range tc.set {
			t.Setenv(variable, values[variable])
		}
		a, err := tables.NewAccountFromEnv(&tables.AccountOptions{Credential: anyToken{}})
		if tc.source != "" {
			if err != nil || a.Source() != tc.source || a.Name() != "contoso" || a.Endpoints() != tables.AccountEndpoints("contoso") {
				t.Errorf("%q: %v, error %v", tc.set, a, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q is accepted as %v", tc.set, a)
			continue
		}
		if e := harness.WantKind(t, err, tables.ErrWiring); !strings.Contains(e.Error(), tc.names) || strings.Contains(e.Error(), "topsecret") || strings.Contains(e.Error(), someKey) {
			t.Errorf("%q: %v does not name %s, or says too much", tc.set, e, tc.names)
		}
	}
}

// TestAccountFromEnvErrors: what is wrong with a variable's value is told under the name of the function.
func TestAccountFromEnvErrors(t *testing.T) {
	for _, variable := range []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_AUTH_MODE"} {
		t.Setenv(variable, "")
	}
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=contoso;AccountKey=topsecret!")
	_, err := tables.NewAccountFromEnv(nil)
	if e := harness.WantKind(t, err, tables.ErrWiring); strings.Contains(e.Error(), "topsecret") {
		t.Error(e)
	}
}

// TestAccountFromEnvNeedsCredential: the library brings no credential for the login, and says what to set.
func TestAccountFromEnvNeedsCredential(t *testing.T) {
	for _, variable := range []string{"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"} {
		t.Setenv(variable, "")
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "contoso")
	t.Setenv("AZURE_STORAGE_AUTH_MODE", "login")
	for _, options := range []*tables.AccountOptions{nil, {}, {Credential: (*anyToken)(nil)}} {
		_, err := tables.NewAccountFromEnv(options)
		assert.Contains(t, harness.WantKind(t, err, tables.ErrWiring).Error(), "AccountOptions.Credential")
	}
}
