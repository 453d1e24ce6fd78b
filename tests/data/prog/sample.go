// SPDX-License-Identifier: Apache-2.0
package main

import "os"

//go:noinline
func goldenSum(values []int) int {
	total := 0
	for _, v := range values {
		total += v
	}
	return total
}

func main() {
	if goldenSum([]int{len(os.Args), 2}) > 3 {
		println("golden go says hello")
	}
}
