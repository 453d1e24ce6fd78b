// SPDX-License-Identifier: Apache-2.0
#[inline(never)]
pub fn golden_sum(values: &[u32]) -> u32 {
    values.iter().fold(0, |a, v| a.wrapping_add(*v))
}

fn main() {
    let n = std::env::args().count() as u32;
    println!("golden rust says {}", golden_sum(&[n, 2, 3]));
}
