//! Error queue of a socket: reads ICMP errors.
//!
//! With IP_RECVERR the system stores each ICMP error in the socket's error queue, together with the
//! packet that caused it (ip(7)). Three properties of Linux (`net/core/skbuff.c`, `net/ipv4/udp.c`)
//! ensure that no error is lost or keeps the engine awake:
//!
//! 1. A queued error also makes the next send *or* receive fail, once. The half that made the call
//!    raises the error signal, which makes `reports` read the queue.
//! 2. Only sendmmsg can hide that failure, behind a message that was sent. `submit` therefore
//!    raises the signal when a call accepts fewer messages than it was given.
//! 3. While the queue has entries, poll(2) reports POLLERR. An engine woken by it receives, and
//!    gets the failure of property 1. Reading the whole queue clears POLLERR.
//!
//! Errors detected by the local system (a packet longer than the interface's MTU) are skipped: the
//! send failed with the same error, and its report includes the port, which the queue lacks.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use apus_driver::{NetworkError, NetworkReport};
use rustix::io::Errno;

use crate::address;
use crate::cmsg;
use crate::counters::Count;
use crate::errors;
use crate::kernel::{self, RecvBuffer};
use crate::shared::SharedSocket;

/// Bytes kept of the returned packet. Routers return 8 bytes after the UDP header, modern ones up
/// to 548 (RFC 1812 section 4.3.2.3).
const RETURNED: usize = 1024;

/// Entries read in one call. Chosen by us: a flood of ICMP errors must not stop the engine.
const ENTRIES_PER_CALL: usize = 256;

/// Reads the error queue of a socket.
#[derive(Debug)]
pub(crate) struct ErrorQueue {
    buffer: RecvBuffer,
}

impl ErrorQueue {
    pub(crate) fn new() -> Self {
        Self { buffer: RecvBuffer::new(RETURNED) }
    }

    /// Passes each report in the queue to `sink`. Returns whether the queue is empty now.
    #[cold]
    pub(crate) fn drain(
        &mut self,
        shared: &SharedSocket,
        reads: &Count,
        sink: &mut dyn FnMut(NetworkReport<'_>),
    ) -> bool {
        for _ in 0..ENTRIES_PER_CALL {
            reads.add(1);
            let fd = shared.as_fd();
            match kernel::receive(fd, std::slice::from_mut(&mut self.buffer), libc::MSG_ERRQUEUE) {
                Ok(_) => {
                    let report = read(self.buffer.name(), self.buffer.control());
                    let beginning = self.buffer.datagram();
                    if let Some((to, error)) = report
                        && let Some((peer, packet)) = shared.carrier.returned(to, beginning)
                    {
                        sink(NetworkReport { peer, error, packet });
                    }
                }
                Err(Errno::AGAIN) => return true,
                // A signal, or an error from elsewhere: read the next entry.
                Err(_) => {}
            }
        }
        false
    }
}

/// Type and code of the ICMPv6 error "unrecognised next header".
const UNKNOWN_NEXT_HEADER: [u8; 2] = [4, 1];

/// Returns the destination of the lost packet and its error.
fn read(name: &[u8], control: &[u8]) -> Option<(SocketAddr, NetworkError)> {
    let peer = address::parse(name)?;
    let error = cmsg::parse(control).find_map(|message| {
        let is_error = matches!(
            (message.level, message.kind),
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        );
        is_error.then_some(message.data)
    })?;
    // struct sock_extended_err: error number, origin, ICMP type and code, and further fields.
    let number = u32::from_ne_bytes(*error.first_chunk()?);
    let origin = *error.get(4)?;
    if origin != libc::SO_EE_ORIGIN_ICMP && origin != libc::SO_EE_ORIGIN_ICMP6 {
        return None;
    }
    // ICMPv6 has no "protocol unreachable": it reports the next header as an unrecognised parameter
    // (RFC 4443 section 3.4), which Linux maps to a protocol error, as any other parameter.
    if origin == libc::SO_EE_ORIGIN_ICMP6 && error.get(5..7)? == UNKNOWN_NEXT_HEADER {
        return Some((peer, NetworkError::ProtocolUnreachable));
    }
    let error = errors::icmp_error(Errno::from_raw_os_error(i32::try_from(number).ok()?))?;
    Some((peer, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Family, RawAddress};

    /// Returns a control message with this error.
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
    fn an_icmp_error_names_the_peer_and_the_error() {
        let control = control(libc::ECONNREFUSED, libc::SO_EE_ORIGIN_ICMP);
        let expected = Some(("10.0.0.1:80".parse().unwrap(), NetworkError::PortClosed));
        assert_eq!(read(peer().as_bytes(), &control), expected);
    }

    #[test]
    fn local_errors_are_not_reported_again() {
        let control = control(libc::EMSGSIZE, libc::SO_EE_ORIGIN_LOCAL);
        assert_eq!(read(peer().as_bytes(), &control), None);
    }

    #[test]
    fn malformed_messages_are_no_reports() {
        let good = control(libc::ECONNREFUSED, libc::SO_EE_ORIGIN_ICMP);
        for cut in 0..good.len() {
            assert_eq!(read(peer().as_bytes(), &good[..cut]), None, "cut at {cut}");
        }
        assert_eq!(read(&[], &good), None);
        let unknown = control(libc::EXDEV, libc::SO_EE_ORIGIN_ICMP);
        assert_eq!(read(peer().as_bytes(), &unknown), None);
    }
}
