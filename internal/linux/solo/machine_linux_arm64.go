package solo

// machine is EM_AARCH64.
const machine = 183
