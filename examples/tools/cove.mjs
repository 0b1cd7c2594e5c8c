// A sandbox of Cove for a program in JavaScript, over its HTTP API, with nothing but
// fetch. COVE_URL and COVE_API_KEY say where the server is.

export class CoveError extends Error {}

export class Sandbox {
  static async open({ url = process.env.COVE_URL, key = process.env.COVE_API_KEY, ...spec } = {}) {
    const sandbox = new Sandbox(url, key)
    const { session_id: id } = await sandbox.request('POST', '', spec)
    sandbox.id = id
    return sandbox
  }

  constructor(url, key) {
    this.base = `${url}/api/sandboxes`
    this.key = key
  }

  // execute runs a line in a fresh shell. A program that fails is an answer.
  execute(command, { timeout, signal } = {}) {
    return this.request('POST', `/${this.id}/execute`, { command, timeout }, signal)
  }

  // bash runs a line in the sandbox's one shell, which remembers.
  bash(code, { timeout, signal } = {}) {
    return this.request('POST', `/${this.id}/code`, { language: 'bash', code, timeout }, signal)
  }

  // restart gives the sandbox a fresh shell; its files stay.
  async restart() {
    const { items } = await this.request('GET', `/${this.id}/contexts`)
    for (const { id, language } of items) {
      if (language === 'bash') await this.request('POST', `/${this.id}/contexts/${id}/restart`)
    }
  }

  close() {
    return this.request('DELETE', `/${this.id}`)
  }

  async request(method, path, body, signal) {
    const response = await fetch(this.base + path, {
      method,
      signal,
      headers: { authorization: `Bearer ${this.key}`, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) {
      const problem = text.startsWith('{') ? JSON.parse(text) : {}
      throw new CoveError([problem.error ?? `Cove answered ${response.status}`, problem.remedy].filter(Boolean).join('\n'))
    }
    return text ? JSON.parse(text) : undefined
  }
}
