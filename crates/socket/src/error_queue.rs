//! What did ICMP say?
//!
//! With IP_RECVERR the system keeps each ICMP error together with the packet that caused it in the
//! socket's error queue (ip(7)). Three facts of the system (Linux `net/core/skbuff.c`,
//! `net/ipv4/udp.c`) make sure that no error is lost and that none keeps the engine awake:
//!
//! 1. An error that is queued also makes the next send *or* receive fail, once. Whichever half is hit
//!    raises the signal, and the signal makes `reports` read the queue.
//! 2. Only sendmmsg can swallow that failure: behind a message that was sent. `submit` therefore
//!    raises the signal when a call took fewer messages than it was given.
//! 3. While the queue has entries, poll(2) reports POLLERR. An engine that is woken by it receives,
//!    and so meets the failure of fact 1; reading the queue to its end ends POLLERR.
//!
//! Errors that the local system found (a packet longer than the interface carries) are skipped: the
//! send failed with the same error, and knew the port too, which the queue does not.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use apus_driver::{NetworkError, NetworkReport};
use rustix::io::Errno;

use crate::address;
use crate::cmsg;
use crate::counters::Count;
use crate::errors;
use crate::kernel::{self, Inbox};
use crate::shared::Shared;

/// Bytes of the returned packet that are kept. Routers return 8 bytes behind the UDP header or, the
/// modern ones, up to 548 (RFC 1812 section 4.3.2.3).
const RETURNED: usize = 1024;

/// Entries that one call takes. Ours: someone who floods us with ICMP errors shall not stop the engine.
const AT_ONCE: usize = 256;

/// Reads the error queue of a socket.
#[derive(Debug)]
pub(crate) struct ErrorQueue {
    inbox: Inbox,
}

impl ErrorQueue {
    pub(crate) fn new() -> Self {
        Self { inbox: Inbox::new(RETURNED) }
    }

    /// Gives each report in the queue to `sink`. Returns whether the queue is empty now.
    #[cold]
    pub(crate) fn drain(
        &mut self,
        shared: &Shared,
        reads: &Count,
        sink: &mut dyn FnMut(NetworkReport<'_>),
    ) -> bool {
        for _ in 0..AT_ONCE {
            reads.add(1);
            let fd = shared.as_fd();
            match kernel::receive(fd, std::slice::from_mut(&mut self.inbox), libc::MSG_ERRQUEUE) {
                Ok(_) => {
                    let report = read(self.inbox.name(), self.inbox.control());
                    let beginning = self.inbox.datagram();
                    if let Some((to, trouble)) = report
                        && let Some((peer, packet)) = shared.carrier.returned(to, beginning)
                    {
                        sink(NetworkReport { peer, error: trouble, packet });
                    }
                }
                Err(Errno::AGAIN) => return true,
                // A signal; or an error that is none of the queue's: then the next entry is read.
                Err(_) => {}
            }
        }
        false
    }
}

/// Type and code.
const UNKNOWN_NEXT_HEADER: [u8; 2] = [4, 1];

/// The destination of the lost packet, and what happened to it.
fn read(name: &[u8], control: &[u8]) -> Option<(SocketAddr, NetworkError)> {
    let peer = address::parse(name)?;
    let error = cmsg::parse(control).find_map(|message| {
        let is_error = matches!(
            (message.level, message.kind),
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        );
        is_error.then_some(message.data)
    })?;
    // struct sock_extended_err: error number, origin, ICMP's type and code, and more.
    let number = u32::from_ne_bytes(*error.first_chunk()?);
    let origin = *error.get(4)?;
    if origin != libc::SO_EE_ORIGIN_ICMP && origin != libc::SO_EE_ORIGIN_ICMP6 {
        return None;
    }
    // ICMPv6 has no "protocol unreachable": it calls the next header a parameter that it does not know (RFC 4443 section
    // 3.4), and Linux that a protocol error, as it calls any other parameter.
    if origin == libc::SO_EE_ORIGIN_ICMP6 && error.get(5..7)? == UNKNOWN_NEXT_HEADER {
        return Some((peer, NetworkError::ProtocolUnreachable));
    }
    let trouble = errors::told(Errno::from_raw_os_error(i32::try_from(number).ok()?))?;
    Some((peer, trouble))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Family, RawAddress};

    /// A control message with this error.
    fn control(number: i32, origin: u8) -> Vec<u8> {
        let header = if cfg!(target_pointer_width = "64") { 16_usize } else { 12 };
        let mut bytes = (header + 16).to_ne_bytes().to_vec();
        bytes.extend(libc::IPPROTO_IP.to_ne_bytes());
        bytes.extend(libc::IP_RECVERR.to_ne_bytes());
        bytes.extend(number.to_ne_bytes());
        bytes.push(origin);
        bytes.resize(header + 16, 0);
        bytes
    }

    fn peer() -> RawAddress {
        RawAddress::new("10.0.0.1:80".parse().unwrap(), Family::V4).unwrap()
    }

    #[test]
    fn an_icmp_error_names_the_peer_and_the_trouble() {
        let control = control(libc::ECONNREFUSED, libc::SO_EE_ORIGIN_ICMP);
        let expected = Some(("10.0.0.1:80".parse().unwrap(), NetworkError::PortClosed));
        assert_eq!(read(peer().as_bytes(), &control), expected);
    }

    #[test]
    fn local_errors_are_not_told_twice() {
        let control = control(libc::EMSGSIZE, libc::SO_EE_ORIGIN_LOCAL);
        assert_eq!(read(peer().as_bytes(), &control), None);
    }

    #[test]
    fn what_makes_no_sense_is_no_report() {
        let good = control(libc::ECONNREFUSED, libc::SO_EE_ORIGIN_ICMP);
        for cut in 0..good.len() {
            assert_eq!(read(peer().as_bytes(), &good[..cut]), None, "cut at {cut}");
        }
        assert_eq!(read(&[], &good), None);
        let unknown = control(libc::EXDEV, libc::SO_EE_ORIGIN_ICMP);
        assert_eq!(read(peer().as_bytes(), &unknown), None);
    }
}
