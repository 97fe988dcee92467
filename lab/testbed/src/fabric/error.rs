//! Reasons why a fabric cannot be created or found, each with its remedy.

use std::path::PathBuf;

use apus_measure::error::Error;

/// Reason why no fabric is available, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A system program is not installed.
    #[error(
        "`{program}` is not installed, and a fabric needs it: install the package {package} \
         (`apt install {package}`, `dnf install {package}`)"
    )]
    Missing {
        /// Name of the program, like `tc`.
        program: &'static str,
        /// Package that contains it in Debian and Fedora.
        package: &'static str,
    },
    /// This user lacks the privilege to create network namespaces.
    #[error(
        "this user may not create network namespaces ({said}); run it as root, or allow all users to \
             create them:\n  sysctl -w user.max_user_namespaces=10000\n  sysctl -w \
         kernel.apparmor_restrict_unprivileged_userns=0   (Ubuntu)\nA container has to be started \
         with the capability SYS_ADMIN (`docker run --privileged`)."
    )]
    NotAllowed {
        /// Message of the system.
        said: String,
    },
    /// The kernel was built without a queueing discipline.
    #[error(
        "this kernel has no queueing discipline `{qdisc}`: load it as root (`modprobe sch_{qdisc}`), \
         or take a kernel that was built with {option}{remark}"
    )]
    NoQdisc {
        /// Name of the discipline in `tc`.
        qdisc: &'static str,
        /// The kernel's configuration option.
        option: &'static str,
        /// Further advice, or empty.
        remark: &'static str,
    },
    /// A system program failed.
    #[error("{place}: `{command}` failed: {said}")]
    Command {
        /// The host's name, or `switch`.
        place: String,
        /// The program and its arguments.
        command: String,
        /// Standard error output of the program, or its exit status.
        said: String,
    },
    /// A persistent fabric of this name exists.
    #[error(
        "fabric `{name}` is up already: `apus-lab fabric down --name {name}` takes it down, and another \
         `--name` gives you a second one"
    )]
    AlreadyUp {
        /// Its name.
        name: String,
    },
    /// A persistent fabric of this name is being created.
    #[error("fabric `{name}` is being created: try again in a moment")]
    Starting {
        /// Its name.
        name: String,
    },
    /// The owner of a persistent fabric has exited without `down`.
    #[error(
        "fabric `{name}` has ended by itself, and nothing of it remains: `apus-lab fabric up --name \
         {name}` makes it anew"
    )]
    Dead {
        /// Its name.
        name: String,
    },
    /// No persistent fabric has this name.
    #[error(
        "no fabric `{name}` is up: `apus-lab fabric up --name {name}` makes one{}",
        listed(others)
    )]
    NotUp {
        /// The requested name.
        name: String,
        /// Existing names.
        others: Vec<String>,
    },
    /// The state folder belongs to another user, or is accessible to other users.
    #[error(
        "{}: this has to be a folder that belongs to you and that no other user may enter; if it is \
         not another user's, `rm -r` it", folder.display()
    )]
    ForeignFolder {
        /// The state folder.
        folder: PathBuf,
    },
    /// A system program printed output that cannot be parsed.
    #[error("{place}: `{command}` printed something unexpected: {problem}")]
    Strange {
        /// The host's name, or `switch`.
        place: String,
        /// The program and its arguments.
        command: String,
        /// Description of the problem.
        problem: String,
    },
}

impl FabricError {
    /// Returns the reason in an experiment's error, if the experiment failed for lack of a fabric.
    #[must_use]
    pub fn of(error: &Error) -> Option<&Self> {
        match error {
            Error::Unavailable { problem, .. } => problem.downcast_ref(),
            _ => None,
        }
    }

    /// Returns whether another attempt must fail in the same way. A program that failed may succeed
    /// later.
    const fn is_final(&self) -> bool {
        !matches!(self, Self::Command { .. } | Self::Strange { .. })
    }
}

impl From<FabricError> for Error {
    fn from(problem: FabricError) -> Self {
        Self::Unavailable { is_final: problem.is_final(), problem: Box::new(problem) }
    }
}

/// Lists the existing names.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(" (there is {})", names.join(", ")),
    }
}
