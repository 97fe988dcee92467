//! The machine that produced a result.

use rustix::thread::sched_getaffinity;
use serde::Serialize;

/// The machine that produced a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Processors that this process may use.
    pub cpus: usize,
    /// Release of the kernel, like `6.18.4`.
    pub kernel: String,
    /// Architecture, like `x86_64`.
    pub arch: String,
}

impl Machine {
    /// Returns the machine of this process.
    #[must_use]
    pub fn here() -> Self {
        let system = rustix::system::uname();
        Self {
            cpus: sched_getaffinity(None).map_or(1, |set| set.count().max(1) as usize),
            kernel: release_number(&system.release().to_string_lossy()).to_owned(),
            arch: system.machine().to_string_lossy().into_owned(),
        }
    }
}

/// Returns the numeric prefix of a release: `6.18.4` of `6.18.4-generic`.
fn release_number(release: &str) -> &str {
    let end = release.find(|c: char| c != '.' && !c.is_ascii_digit());
    &release[..end.unwrap_or(release.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_cpu_a_kernel_and_an_architecture() {
        let machine = Machine::here();
        assert!(machine.cpus >= 1);
        assert!(machine.kernel.contains('.') && !machine.arch.is_empty(), "{machine:?}");
    }

    #[test]
    fn a_release_is_cut_to_its_number() {
        assert_eq!(release_number("6.18.4-generic"), "6.18.4");
        assert_eq!(release_number("6.18"), "6.18");
    }
}
