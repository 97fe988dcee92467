//! What the system refuses, in words: the call, and the limit that it has met.

use crate::warning;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::sync::Once;

/// Descriptors that an endpoint opens.
const PER_ENDPOINT: u32 = 5;

/// Names the call behind an error, and its remedy.
pub(crate) trait Named<T> {
    /// Adds `call`, such as `eventfd`, to the error.
    fn named(self, call: &str) -> io::Result<T>;
}

impl<T, E: Into<io::Error>> Named<T> for Result<T, E> {
    fn named(self, call: &str) -> io::Result<T> {
        self.map_err(|error| {
            let error = error.into();
            io::Error::new(error.kind(), format!("{call}: {error}{}", remedy(&error)))
        })
    }
}

/// Returns the remedy for an error, to be printed behind it; empty if none is known.
pub(crate) fn remedy(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => {
            let most = getrlimit(Resource::Nofile).current;
            let most = most.map_or_else(|| "no limit".to_owned(), |most| most.to_string());
            format!(
                "; this process may have {most} descriptors (`ulimit -n`), an endpoint needs \
                 {PER_ENDPOINT} and one or more for each process of this host that it talks to"
            )
        }
        Some(Errno::NFILE) => {
            "; the table of files of this host is full (`sysctl fs.file-max`)".into()
        }
        _ => String::new(),
    }
}

/// Prints a warning if `error` is a lack of descriptors, once in a process.
pub(crate) fn warn_about_descriptors(error: &io::Error) {
    static SAID: Once = Once::new();
    let lacks = matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::MFILE | Errno::NFILE)
    );
    if lacks {
        SAID.call_once(|| {
            warning::print(format_args!(
                "{error}{}: processes of this host reach this one over the network, not through memory",
                remedy(error)
            ));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_call_and_the_limit() {
        let error = Err::<(), _>(Errno::MFILE).named("eventfd").unwrap_err().to_string();
        assert!(error.starts_with("eventfd: Too many open files"), "{error}");
        assert!(error.contains("`ulimit -n`") && error.contains("needs 5"), "{error}");
        let error = Err::<(), _>(Errno::PERM).named("epoll_create").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().starts_with("epoll_create: Operation not permitted"), "{error}");
    }
}
