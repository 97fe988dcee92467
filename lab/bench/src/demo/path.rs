//! The path that the messages of the demo take.

use std::fmt;

/// Path of the demo's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Between hosts on shaped links: namespaces of this machine, real sockets.
    Fabric,
    /// Through the simulator.
    Simulator,
    /// Over the loopback interface.
    Loopback,
}

impl Path {
    /// Returns a sentence for the page.
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Fabric => "Real sockets between hosts of this machine, on links of a fixed rate.",
            Self::Simulator => "Simulated hosts: this system allows no network between hosts.",
            Self::Loopback => {
                "Loopback of one machine: this system allows no network between hosts, and the simulator does not run. \
                 No link is the bottleneck here, so this does not show what apus is for."
            }
        }
    }
}

/// As in JSON.
impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Fabric => "fabric",
            Self::Simulator => "simulator",
            Self::Loopback => "loopback",
        })
    }
}
