//! What does it mean that the system refuses a fabric?

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
