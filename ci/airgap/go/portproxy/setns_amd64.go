package main

// setnsCall is the system call's number, which package syscall has for some architectures only.
const setnsCall = 308
