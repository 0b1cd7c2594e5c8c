package artifact_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/artifact"
)

// Texts that look like credentials are put together here, so that nobody who
// scans this repository takes them for some.
var (
	jwt     = "eyJ" + strings.Repeat("a", 20) + ".eyJ" + strings.Repeat("b", 20) + "." + strings.Repeat("c", 30)
	private = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + strings.Repeat("QUJD\n", 8) + "-----END RSA " + "PRIVATE KEY-----"
)

func TestSecretsAreTakenOut(t *testing.T) {
	for name, secret := range map[string]string{
		"of the settings":     "hunter2hunter2",
		"of the environment":  "s3cr3t-value",
		"of AWS":              "AKIA" + strings.Repeat("Q", 16),
		"of GitHub":           "ghp_" + strings.Repeat("a1", 18),
		"of GitHub, fine":     "github_pat_" + strings.Repeat("a1", 18),
		"of GitLab":           "glpat-" + strings.Repeat("a1", 10),
		"of Cove":             "cove_" + strings.Repeat("a1", 16),
		"of a model":          "sk-proj-" + strings.Repeat("a1", 18),
		"of Slack":            "xoxb-" + strings.Repeat("12", 12),
		"of Google":           "AIza" + strings.Repeat("a", 35),
		"a token":             jwt,
		"a private key":       private,
		"an unfinished key":   private[:80],
		"two settings in one": "hunter2hunter2-and-more",
	} {
		dir := filepath.Join(t.TempDir(), "executions")
		s := artifact.New(dir, artifact.Config{When: artifact.Always, Secrets: []string{"hunter2hunter2", "hunter2hunter2-and-more", "short", ""}})
		a := ran("k = '''"+secret+"'''\nprint('short')", 1)
		a.Env = map[string]string{"MY_API_TOKEN": "s3cr3t-value", "LANG": "Execution"}
		a.Result.Stdout.Data = []byte("it is " + secret)
		a.Result.Stderr.Data = []byte(secret)
		a.Result.Results = []cove.Rich{{"text/plain": "'" + secret + "'"}}
		a.Result.Error = &cove.CodeError{Name: "E", Value: secret, Traceback: "1\n" + secret}
		put(t, s, a)
		_, texts := files(t, dir)
		first, _, _ := strings.Cut(secret, "\n")
		if strings.Contains(texts[0], first) || strings.Count(texts[0], "[redacted]") < 6 {
			t.Errorf("%s is in the file:\n%s", name, texts[0])
		}
		if name != "an unfinished key" && !strings.Contains(texts[0], "short") || !strings.Contains(texts[0], "python") {
			t.Errorf("%s: too much is gone:\n%s", name, texts[0])
		}
	}
}

func TestPartsOfSecretsAreTakenOut(t *testing.T) {
	for text, want := range map[string]string{
		"curl -H 'Authorization: Bearer abcdefgh12345'":                              "curl -H 'Authorization: Bearer [redacted]'",
		"postgres://bob:hunter2@db/x":                                                "postgres://bob:[redacted]@db/x",
		"MY_TOKEN='abcdef'; tokenizer = 'abcdef'":                                    "MY_TOKEN='[redacted]'; tokenizer = 'abcdef'",
		"password = 'correct horse'":                                                 "password = '[redacted]'",
		`{\"api_key\": 1}`:                                                           `{\"api_key\": 1}`,
		`AWS_SECRET_ACCESS_KEY = "wJalrXUtnFEMI/K7"`:                                 `AWS_SECRET_ACCESS_KEY = "[redacted]"`,
		`os.environ["API_TOKEN"] = "abcdef1"`:                                        `os.environ["API_TOKEN"] = "[redacted]"`,
		`os.environ.setdefault('DB_PASSWORD', 'abcdef1')`:                            `os.environ.setdefault('DB_PASSWORD', '[redacted]')`,
		`headers = {"X-Api-Key": "abcdef1"}`:                                         `headers = {"X-Api-Key": "[redacted]"}`,
		`token: str = f"abcdef1"`:                                                    `token: str = f"[redacted]"`,
		`db_pass = 'abcdef1'`:                                                        `db_pass = '[redacted]'`,
		`password = "it's a \"long\" one"`:                                           `password = "[redacted]"`,
		`secret = """one two` + "\n" + `three"""`:                                    `secret = """[redacted]"""`,
		`'{\"token\": \"abcdef1\"}'`:                                                 `'{\"token\": \"[redacted]\"}'`,
		"export API_TOKEN=abcdef1; false":                                            "export API_TOKEN=[redacted]; false",
		"login(token=find_token(), key='population')":                                "login(token=find_token(), key='population')",
		"repr: 'two\\nlines'":                                                        "repr: '[redacted]'",
		"https://x/?q=two%0Alines":                                                   "https://x/?q=[redacted]",
		"dG9wc2VjcmV0IQ==":                                                           "[redacted]",
		"k AKIAQQQQQ\n... (output truncated)\nQQQQQ1QQQQQ x":                         "k [redacted]\n... (output truncated)\n[redacted] x",
		"a\n... (output truncated)\nQUJD\nQUJD\n" + private[len(private)-29:] + " b": "a\n... (output truncated)\n[redacted] b",
		"a\n... (output truncated)\nextraordinary b":                                 "a\n... (output truncated)\nextraordinary b",
		"see https://example.com:8080/a@b":                                           "see https://example.com:8080/a@b",
		"task-management-of-a-very-long-name":                                        "task-management-of-a-very-long-name",
		"abc tops\n... (output truncated)\necret! def":                               "abc [redacted]\n... (output truncated)\n[redacted] def",
		"abc topsecret! def\n... (output truncated)\nsecret":                         "abc [redacted] def\n... (output truncated)\nsecret",
	} {
		dir := filepath.Join(t.TempDir(), "executions")
		a := ran("x", 1)
		a.Result.Stderr.Data = []byte(text)
		put(t, artifact.New(dir, artifact.Config{When: artifact.Always, Secrets: []string{"topsecret!", "two\nlines"}}), a)
		_, texts := files(t, dir)
		quoted := strings.NewReplacer("\\", "\\\\", "\n", `\n`, `"`, `\"`).Replace(want)
		if !strings.Contains(texts[0], `"stderr": "`+quoted+`"`) {
			t.Errorf("%q has become\n%s", text, texts[0])
		}
	}
}
