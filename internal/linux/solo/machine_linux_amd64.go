package solo

// machine is EM_X86_64.
const machine = 62
