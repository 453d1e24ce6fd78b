// SPDX-License-Identifier: Apache-2.0
#[no_mangle]
static GOLDEN_WORDS: [&str; 3] = ["golden rust one", "golden rust two", "golden rust three"];

#[inline(never)]
pub fn golden_sum(values: &[u32]) -> u32 {
    values.iter().fold(0, |a, v| a.wrapping_add(*v))
}

fn main() {
    let n = std::env::args().count() as u32;
    println!("{} {}", GOLDEN_WORDS[(n % 3) as usize], golden_sum(&[n, 2, 3]));
}
