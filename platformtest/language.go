package platformtest

// Python is Python in the suite's snippets.
func Python() *Language {
	return &Language{
		Name: "python", Assign: "x = 42", Show: "print(x)", Value: "x + 1",
		Word:  "import os; print(os.environ['WORD'])",
		Raise: "raise ValueError('msg')", Kind: "ValueError", Text: "msg",
		Die: "import os; os._exit(3)", Loop: "while True: pass",
	}
}

// Node is Node in the suite's snippets.
func Node() *Language {
	return &Language{
		Name: "node", Assign: "let x = 42", Show: "console.log(x)", Value: "x + 1",
		Word:  "console.log(process.env.WORD.toString())",
		Raise: "throw new TypeError('msg')", Kind: "TypeError", Text: "msg",
		Die: "process.reallyExit(3)", Loop: "for (;;) {}",
	}
}

// Bash is bash in the suite's snippets. It has no values.
func Bash() *Language {
	return &Language{
		Name: "bash", Assign: "x=42", Show: `echo "${x:?}"`, Word: `echo "${WORD:?}"`,
		Raise: ")", Kind: "SyntaxError", Text: "syntax error near unexpected token `)'",
		Die: "kill -9 $$", Loop: "while :; do :; done",
	}
}
