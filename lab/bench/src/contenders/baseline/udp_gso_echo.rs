//! Round trips of small packets, many at a time: the upper bound for the rate of every message
//! transport over UDP sockets.
//!
//! Packets are as long as those of apus: its DATA header and the payload. Up to 64 of them leave in
//! one call (`UDP_SEGMENT`), and arrive in one (`UDP_GRO`). Each side returns the packets of one
//! receive call in one send call, without further processing: no acknowledgment, ordering or
//! duplicate detection. Lost packets are resent after a while, so that the experiment continues;
//! the loopback interface loses none.
//!
//! Settings: connected sockets on both sides; the requests start in [`BURSTS`] bursts, so that both
//! sides work at the same time, and each burst stays together.

use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, connect, recv, recvfrom, send};

use super::udp_gso::{open, set_udp_option};
use super::waiter::Waiter;
use crate::contenders::contender::Contender;
use apus_measure::meter::Meter;
use apus_measure::plan::{Plan, Side};
use apus_measure::process::wake_on_stop;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Control;

/// Round trips of small packets at the highest possible rate.
#[derive(Clone, Copy, Debug)]
pub struct UdpGsoEcho;

/// Bytes in front of the payload of a DATA packet of apus.
const HEADER: usize = apus_wire::DATA_HEADER_LEN;

/// Maximum payload of a UDP datagram over IPv4: 65535 less 20 and 8 bytes of headers.
const MAX_PAYLOAD: usize = 65_507;

/// Maximum packets per call (the kernel's `UDP_MAX_SEGMENTS` before Linux 6.9).
const MAX_SEGMENTS: usize = 64;

/// Bursts that the outstanding requests are divided into.
const BURSTS: usize = 4;

/// Length of the request number at the start of a packet.
const NUMBER: usize = size_of::<u64>();

/// Time without a packet, in nanoseconds, after which all outstanding packets count as lost.
const LOST: u64 = 100_000_000;

impl Contender for UdpGsoEcho {
    fn name(&self) -> &'static str {
        "udp-gso"
    }

    fn settings(&self) -> String {
        format!(
            "connected sockets, UDP_SEGMENT with up to {MAX_SEGMENTS} packets a call, UDP_GRO, requests in {BURSTS} bursts; each \
             packet carries {HEADER} bytes more than the payload, as apus's do; nothing is acknowledged"
        )
    }

    fn exclusion(&self, plan: &Plan) -> Option<String> {
        let packet = plan.size + HEADER;
        (packet > MAX_PAYLOAD).then(|| {
            format!("{packet} bytes do not fit into a datagram of at most {MAX_PAYLOAD} bytes")
        })
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let socket = open()?;
        set_udp_option(&socket, libc::UDP_GRO, 1)?;
        set_udp_option(&socket, libc::UDP_SEGMENT, (plan.size + HEADER) as i32)?;
        let address = socket.local_addr().doing(|| "find out the port".to_owned())?;
        wake_on_stop(&socket, control.stop())?;
        control.ready(address)?;
        let waiter = Waiter::new(plan.poll, control.stop());
        let mut bytes = vec![0; 1 << 16];
        let first = waiter.receive(|flags| {
            recvfrom(&socket, &mut bytes[..], flags).map(|(length, _, from)| (length, from))
        });
        let Some((mut length, Some(from))) = first.doing(|| "receive".to_owned())? else {
            return Ok(Side::default());
        };
        connect(&socket, &from).doing(|| format!("connect to {from:?}"))?;
        loop {
            match send(&socket, &bytes[..length], SendFlags::empty()) {
                Ok(_) => {}
                // The client has closed its socket.
                Err(Errno::CONNREFUSED) => return Ok(Side::default()),
                Err(error) => {
                    return Err(error).doing(|| format!("send {length} bytes to {from:?}"));
                }
            }
            match waiter.receive(|flags| recv(&socket, &mut bytes[..], flags)) {
                Ok(Some((received, _))) => length = received,
                Ok(None) | Err(Errno::CONNREFUSED) => return Ok(Side::default()),
                Err(error) => return Err(error).doing(|| "receive".to_owned()),
            }
        }
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let packet = plan.size + HEADER;
        let socket = open()?;
        set_udp_option(&socket, libc::UDP_GRO, 1)?;
        set_udp_option(&socket, libc::UDP_SEGMENT, packet as i32)?;
        socket.connect(server).doing(|| format!("connect to {server}"))?;
        let send_all = |bytes: &[u8]| {
            let sent = send(&socket, bytes, SendFlags::empty());
            sent.map(drop).doing(|| format!("send {} bytes to {server}", bytes.len()))
        };
        let mut meter = Meter::start(plan);
        let mut sent = vec![clock::now(); plan.outstanding];
        let burst = plan.outstanding.div_ceil(BURSTS).min(MAX_SEGMENTS).min(MAX_PAYLOAD / packet);
        let mut requests = vec![0; packet * plan.outstanding];
        for (number, request) in requests.chunks_mut(packet).enumerate() {
            request[..NUMBER].copy_from_slice(&(number as u64).to_le_bytes());
        }
        let begin = || requests.chunks(packet * burst).try_for_each(send_all);
        begin()?;
        let mut bytes = vec![0; 1 << 16];
        let mut heard = clock::now();
        while !control.stop().is_asked() {
            let length = match recv(&socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => length,
                Err(Errno::AGAIN | Errno::INTR) => {
                    let now = clock::now();
                    if meter.is_over(now) {
                        break;
                    }
                    if now > heard + LOST {
                        heard = now;
                        begin()?;
                    } else if plan.poll.spin_for().is_some() {
                        wait_a_moment(&socket);
                    }
                    continue;
                }
                Err(error) => return Err(error).doing(|| format!("receive from {server}")),
            };
            let now = clock::now();
            heard = now;
            let replies = bytes[..length].chunks_exact(packet);
            let count = replies.len() as u64;
            for reply in replies {
                let (number, _) = reply.split_at(NUMBER);
                let number = u64::from_le_bytes(number.try_into().expect("8 bytes"));
                let Some(sent) = usize::try_from(number).ok().and_then(|at| sent.get_mut(at))
                else {
                    return Err(Error::Peer(format!("{server} answers request {number}")));
                };
                meter.latency(now - *sent);
                *sent = now;
            }
            meter.count(now, count, count * plan.size as u64);
            if meter.is_over(now) {
                break;
            }
            send_all(&bytes[..length])?;
        }
        Ok(meter.finish())
    }
}

/// Sleeps until the socket is readable, for up to [`LOST`] nanoseconds.
fn wait_a_moment(socket: &std::net::UdpSocket) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let time = Timespec { tv_sec: 0, tv_nsec: LOST as i64 };
    // After an error the caller only tries too early.
    let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&time));
}
