//! What does it mean that the system refuses a fabric?

use std::path::PathBuf;

/// Why there is no fabric, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A program of the system is not there.
    #[error(
        "`{program}` is not installed, and a fabric needs it: install the package {package} \
         (`apt install {package}`, `dnf install {package}`)"
    )]
    Missing {
        /// Name of the program, like `tc`.
        program: &'static str,
        /// Where Debian and Fedora have it.
        package: &'static str,
    },
    /// This user may not create network namespaces.
    #[error(
        "this user may not create network namespaces ({said}); run it as root, or let everybody \
         create them:\n  sysctl -w user.max_user_namespaces=10000\n  sysctl -w \
         kernel.apparmor_restrict_unprivileged_userns=0   (Ubuntu)\nA container has to be started \
         with the capability SYS_ADMIN (`docker run --privileged`)."
    )]
    NotAllowed {
        /// What the system said.
        said: String,
    },
    /// The kernel was built without something.
    #[error(
        "this kernel has no queueing discipline `{qdisc}`: load it as root (`modprobe sch_{qdisc}`), \
         or take a kernel that was built with {option}{remark}"
    )]
    NoQdisc {
        /// As `tc` calls it.
        qdisc: &'static str,
        /// The kernel's configuration option.
        option: &'static str,
        /// What else there is to say.
        remark: &'static str,
    },
    /// A program of the system refused.
    #[error("{place}: `{command}` failed: {said}")]
    Command {
        /// In which host, or `switch`.
        place: String,
        /// The program and its arguments.
        command: String,
        /// What it wrote to standard error, or how it ended.
        said: String,
    },
    /// There is a standing fabric of that name.
    #[error(
        "fabric `{name}` is up already: `apus fabric down --name {name}` takes it down, and another \
         `--name` gives you a second one"
    )]
    AlreadyUp {
        /// Its name.
        name: String,
    },
    /// A standing fabric is being made.
    #[error("fabric `{name}` is just coming up: try again in a moment")]
    Coming {
        /// Its name.
        name: String,
    },
    /// A standing fabric has ended, and not by being taken down.
    #[error(
        "fabric `{name}` has ended by itself, and nothing is left of it: `apus fabric up --name \
         {name}` makes it anew"
    )]
    Dead {
        /// Its name.
        name: String,
    },
    /// There is no such standing fabric.
    #[error("no fabric `{name}` is up: `apus fabric up --name {name}` makes one{}", listed(others))]
    NotUp {
        /// The name.
        name: String,
        /// Those that there are.
        others: Vec<String>,
    },
    /// The folder for what is written down about fabrics is not this user's own.
    #[error(
        "{}: this has to be a folder that belongs to you and that nobody else may enter; if it is \
         not somebody else's, `rm -r` it", folder.display()
    )]
    ForeignFolder {
        /// Which one.
        folder: PathBuf,
    },
    /// What a program of the system printed is not what it prints elsewhere.
    #[error("{place}: `{command}` printed something strange: {problem}")]
    Strange {
        /// In which host, or `switch`.
        place: String,
        /// The program and its arguments.
        command: String,
        /// What is strange about it.
        problem: String,
    },
}

/// The other names that there are.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(" (there is {})", names.join(", ")),
    }
}
