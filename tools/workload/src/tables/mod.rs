//! What do the five published workloads look like?
//!
//! One table per workload: 64 sizes, each standing for a group of neighbouring sizes of the original.
//! Its size is the group's mean, so the mean of the whole is exact, and the largest size is kept.
//!
//! Source: the distributions of SIGCOMM 2018 (figure 1) as `util/dist.cc` of the Homa kernel module
//! lists them, reduced by us.

mod w1;
mod w2;
mod w3;
mod w4;
mod w5;

/// The table of workload `W<number>`, if there is one.
pub(crate) fn table(number: u32) -> Option<&'static [(u32, f64)]> {
    match number {
        1 => Some(&w1::W1),
        2 => Some(&w2::W2),
        3 => Some(&w3::W3),
        4 => Some(&w4::W4),
        5 => Some(&w5::W5),
        _ => None,
    }
}
