//! The version of the library, and the names of statuses.

use apus_bindings::Status;
use std::ffi::{CStr, c_char};

/// First part of the version of the header. `apus_version` returns that of the library.
pub const APUS_VERSION_MAJOR: u32 = 0;
/// Second part of the version of the header.
pub const APUS_VERSION_MINOR: u32 = 1;
/// Third part of the version of the header.
pub const APUS_VERSION_PATCH: u32 = 0;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Returns the version of the library, such as "0.1.0". The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn apus_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// Returns the name of a status, such as "deadline_exceeded"; "unknown" for a number that this version does not
/// have. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn apus_status_name(status: i32) -> *const c_char {
    name(status).as_ptr()
}

/// A number and not a [`Status`]: C can pass any number.
fn name(status: i32) -> &'static CStr {
    const NAMES: &[(Status, &CStr)] = &[
        (Status::Ok, c"ok"),
        (Status::PeerSilent, c"peer_silent"),
        (Status::PortClosed, c"port_closed"),
        (Status::ProtocolUnreachable, c"protocol_unreachable"),
        (Status::HostUnreachable, c"host_unreachable"),
        (Status::NotPermitted, c"not_permitted"),
        (Status::PeerRestarted, c"peer_restarted"),
        (Status::ResponseLost, c"response_lost"),
        (Status::Overloaded, c"overloaded"),
        (Status::RequestTooLarge, c"request_too_large"),
        (Status::NotServing, c"not_serving"),
        (Status::PeerShuttingDown, c"peer_shutting_down"),
        (Status::Abandoned, c"abandoned"),
        (Status::ClientTooOld, c"client_too_old"),
        (Status::PeerTooOld, c"peer_too_old"),
        (Status::ResponseTooLarge, c"response_too_large"),
        (Status::PeerEnded, c"peer_ended"),
        (Status::ProtocolBroken, c"protocol_broken"),
        (Status::DeadlineExceeded, c"deadline_exceeded"),
        (Status::Cancelled, c"cancelled"),
        (Status::ShutDown, c"shut_down"),
        (Status::MessageTooLarge, c"message_too_large"),
        (Status::EmptyMessage, c"empty_message"),
        (Status::NoRoom, c"no_room"),
        (Status::Closed, c"closed"),
        (Status::DriverFailed, c"driver_failed"),
        (Status::ClientGone, c"client_gone"),
        (Status::AddressUnresolved, c"address_unresolved"),
        (Status::OpenFailed, c"open_failed"),
        (Status::InvalidOptions, c"invalid_options"),
        (Status::InvalidArgument, c"invalid_argument"),
        (Status::NoDescriptors, c"no_descriptors"),
        (Status::Internal, c"internal"),
        (Status::Other, c"other"),
    ];
    let known = NAMES.iter().find(|(known, _)| *known as i32 == status);
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
    fn every_status_has_a_name_and_other_numbers_have_none() {
        let named = (-1..200).filter(|status| name(*status) != c"unknown").count();
        // As many as the file that defines them has.
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../bindings/src/status.rs");
        let Ok(source) = std::fs::read_to_string(file) else {
            eprintln!("SKIPPED: no ../bindings; this is not a checkout of the workspace");
            return;
        };
        let defined = source.lines().filter(|line| line.contains(" = ")).count();
        assert_eq!(named, defined);
        assert_eq!(name(i32::MAX), c"unknown");
    }
}
