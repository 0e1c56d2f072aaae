// Package hack holds the rules about the source tree that a test can hold: who may import whom, and what no
// file may say. The programs and scripts beside it are how we work on the project.
package hack
