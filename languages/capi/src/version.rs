//! The version of the library, and the names of statuses.

use apus_bindings::Status;
use std::ffi::{CStr, c_char};

/// First part of the header's version. `apus_version` returns the library's version.
pub const APUS_VERSION_MAJOR: u32 = 0;
/// Second part of the header's version.
pub const APUS_VERSION_MINOR: u32 = 1;
/// Third part of the header's version.
pub const APUS_VERSION_PATCH: u32 = 0;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Returns the version of the library, such as "0.1.0". The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn apus_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// Returns the name of a status, such as "deadline_exceeded"; "unknown" for an unknown number. The
/// text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn apus_status_name(status: i32) -> *const c_char {
    name(status).as_ptr()
}

/// A number rather than a [`Status`], since C can pass any number.
fn name(status: i32) -> &'static CStr {
    let known = Status::ALL.iter().find(|(known, _)| *known as i32 == status);
    known.map_or(c"unknown", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_version_of_the_crate() {
        let header = format!("{APUS_VERSION_MAJOR}.{APUS_VERSION_MINOR}.{APUS_VERSION_PATCH}");
        assert_eq!(header, env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn a_number_that_is_no_status_has_no_name() {
        assert_eq!(name(0), c"ok");
        assert_eq!(name(Status::NoRoom as i32), c"no_room");
        for unknown in [-1, 31, i32::MAX] {
            assert_eq!(name(unknown), c"unknown");
        }
    }
}
