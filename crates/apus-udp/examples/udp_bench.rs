//! What does the driver cost on top of bare UDP sockets?
//!
//! ```sh
//! cargo run --release -p apus-udp --example udp_bench            # everything
//! cargo run --release -p apus-udp --example udp_bench -- stream  # one of pingpong, batch, stream
//! ```
//!
//! Two spinning threads on two cores exchange packets over the loopback device. Each experiment runs
//! bare sockets and the driver in turn, several times, and prints medians and the median of the pairs'
//! ratios: a noisy machine disturbs both alike. The bare loops are the floor: they know sizes and peers
//! beforehand, and copy nothing.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use apus_driver::{Burst, Driver, Receive, Transmit};
use apus_udp::{Udp, UdpConfig};
use nix::sys::socket::{
    ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt, sockopt::UdpGroSegment,
};
use socket2::{MaybeUninitSlice, MsgHdrMut, SockAddr, SockRef};
use std::os::fd::AsRawFd;

/// Pairs of runs of one experiment.
const PAIRS: usize = 15;
const RUN: Duration = Duration::from_millis(300);
/// A small request or reply.
const SMALL: usize = 156;

fn main() {
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wanted("pingpong") {
        println!("round trip of one {SMALL}-byte packet, ns:");
        compare("  sendto/recvfrom", false, || bare_pingpong(bare_receive), || driver_pingpong(1));
        compare("  sendto/recvmsg", false, || bare_pingpong(bare_recvmsg), || driver_pingpong(1));
    }
    if wanted("batch") {
        println!("packets of {SMALL} bytes there and back in batches of 64, thousands a second:");
        compare("  bare: one prepared batch", true, || bare_batch(false), || driver_pingpong(64));
        compare("  bare: copied together", true, || bare_batch(true), || driver_pingpong(64));
        compare("  same, 8 peers in turn", true, || bare_peers(8), || driver_peers(8));
    }
    if wanted("stream") {
        println!("bursts of large packets one way, Mbit/s:");
        for size in [1472, 2000, 3000, 4000, 6000, 8972] {
            compare(&format!("  {size} bytes"), true, || bare_stream(size), || driver_stream(size));
        }
    }
}

/// Runs both sides in turn and prints how they compare. `more`: larger figures are better.
fn compare(what: &str, more: bool, bare: impl Fn() -> f64, driver: impl Fn() -> f64) {
    let mut runs: Vec<(f64, f64)> = (0..=PAIRS).map(|_| (bare(), driver())).skip(1).collect();
    let mut median = |of: fn(&(f64, f64)) -> f64| {
        runs.sort_by(|a, b| of(a).total_cmp(&of(b)));
        of(&runs[runs.len() / 2])
    };
    let (bare, driver) = (median(|run| run.0), median(|run| run.1));
    let ratio = median(|run| run.1 / run.0);
    let better = if more { "more is better" } else { "less is better" };
    println!("{what:28} bare {bare:9.0}  driver {driver:9.0}  ratio {ratio:.3} ({better})");
}

// ---- bare sockets ----

fn bare_socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    // The same buffers as the driver has.
    SockRef::from(&socket).set_recv_buffer_size(4 << 20).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Spins until something has come; `None` if it was told to stop.
fn bare_receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
    stop: &AtomicBool,
) -> Option<(usize, SocketAddr)> {
    loop {
        match socket.recv_from(buffer) {
            Ok(got) => return Some(got),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if stop.load(Ordering::Relaxed) {
                    return None;
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The same with recvmsg, by which one learns of congestion marks and merged datagrams. What has come is
/// thrown away: the buffer stays as it was.
fn bare_recvmsg(
    socket: &UdpSocket,
    _buffer: &mut [u8],
    stop: &AtomicBool,
) -> Option<(usize, SocketAddr)> {
    let (mut data, mut control) = ([MaybeUninit::uninit(); 2048], [MaybeUninit::uninit(); 160]);
    let mut from = SockAddr::from(SocketAddr::from(([0; 4], 0)));
    loop {
        let mut buffers = [MaybeUninitSlice::new(&mut data)];
        let mut header = MsgHdrMut::new()
            .with_addr(&mut from)
            .with_buffers(&mut buffers)
            .with_control(&mut control);
        match SockRef::from(socket).recvmsg(&mut header, 0) {
            Ok(len) => return Some((len, from.as_socket().unwrap())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if stop.load(Ordering::Relaxed) {
                    return None;
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
}

type BareReceive = fn(&UdpSocket, &mut [u8], &AtomicBool) -> Option<(usize, SocketAddr)>;

fn bare_pingpong(receive: BareReceive) -> f64 {
    let ((client, _), (server, to)) = (bare_socket(), bare_socket());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let mut buffer = vec![0; 1 << 16];
            while let Some((len, from)) = receive(&server, &mut buffer, &stop) {
                server.send_to(&buffer[..len], from).unwrap();
            }
        });
        let mut buffer = vec![0; 1 << 16];
        let median = round_trips(&mut || {
            client.send_to(&[7; SMALL], to).unwrap();
            receive(&client, &mut buffer, &AtomicBool::new(false)).unwrap();
        });
        stop.store(true, Ordering::Relaxed);
        median
    })
}

/// Sends 64 packets in one datagram.
fn bare_send(socket: &UdpSocket, bytes: &[u8], segment: usize, to: &SockaddrStorage) {
    let segment = u16::try_from(segment).unwrap();
    let control = [ControlMessage::UdpGsoSegments(&segment)];
    let fd = socket.as_raw_fd();
    sendmsg(fd, &[IoSlice::new(bytes)], &control, MsgFlags::empty(), Some(to)).unwrap();
}

/// `copied`: each packet is put into the batch by itself, as it must be if it comes from a message of
/// its own; otherwise the batch is there from the beginning, and goes back as it came.
fn bare_batch(copied: bool) -> f64 {
    let ((client, back), (server, to)) = (bare_socket(), bare_socket());
    for socket in [&client, &server] {
        setsockopt(socket, UdpGroSegment, &true).unwrap();
    }
    let (back, to) = (SockaddrStorage::from(back), SockaddrStorage::from(to));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let (mut buffer, mut batch) = (vec![0; 1 << 16], vec![0; 1 << 16]);
            while let Some((len, _)) = bare_receive(&server, &mut buffer, &stop) {
                if copied {
                    for (from, to) in buffer[..len].chunks(SMALL).zip(batch.chunks_mut(SMALL)) {
                        put(to, from);
                    }
                    bare_send(&server, &batch[..len], SMALL, &back);
                } else {
                    bare_send(&server, &buffer[..len], SMALL, &back);
                }
            }
        });
        let (mut buffer, mut batch) = (vec![0; 1 << 16], vec![7; 64 * SMALL]);
        let (never, packet) = (AtomicBool::new(false), [7; SMALL]);
        let median = round_trips(&mut || {
            if copied {
                batch.chunks_mut(SMALL).for_each(|to| put(to, &packet));
            }
            bare_send(&client, &batch, SMALL, &to);
            let mut missing = batch.len();
            while missing > 0 {
                missing -= bare_receive(&client, &mut buffer, &never).unwrap().0;
            }
        });
        stop.store(true, Ordering::Relaxed);
        64.0 * 1e6 / median
    })
}

/// Batches of 64 to several sockets of one thread, copied together for each of them.
fn bare_peers(peers: usize) -> f64 {
    let (client, back) = bare_socket();
    let (servers, addresses): (Vec<_>, Vec<_>) = (0..peers).map(|_| bare_socket()).unzip();
    for socket in servers.iter().chain([&client]) {
        setsockopt(socket, UdpGroSegment, &true).unwrap();
    }
    let addresses: Vec<_> = addresses.into_iter().map(SockaddrStorage::from).collect();
    let back = SockaddrStorage::from(back);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let (mut buffer, mut batch) = (vec![0; 1 << 16], vec![0; 1 << 16]);
            while !stop.load(Ordering::Relaxed) {
                for server in &servers {
                    let Ok((len, _)) = server.recv_from(&mut buffer) else { continue };
                    for (from, to) in buffer[..len].chunks(SMALL).zip(batch.chunks_mut(SMALL)) {
                        put(to, from);
                    }
                    bare_send(server, &batch[..len], SMALL, &back);
                }
            }
        });
        let (mut buffer, mut batch) = (vec![0; 1 << 16], vec![7; 64 / peers * SMALL]);
        let (never, packet) = (AtomicBool::new(false), [7; SMALL]);
        let median = round_trips(&mut || {
            for to in &addresses {
                batch.chunks_mut(SMALL).for_each(|to| put(to, &packet));
                bare_send(&client, &batch, SMALL, to);
            }
            let mut missing = 64 * SMALL;
            while missing > 0 {
                missing -= bare_receive(&client, &mut buffer, &never).unwrap().0;
            }
        });
        stop.store(true, Ordering::Relaxed);
        64.0 * 1e6 / median
    })
}

/// Copies header and payload, of lengths that the compiler does not know.
#[inline(never)]
fn put(to: &mut [u8], from: &[u8]) {
    let header = std::hint::black_box(60);
    to[..header].copy_from_slice(&from[..header]);
    to[header..].copy_from_slice(&from[header..]);
}

/// Packets of this size that one send has.
fn per_send(size: usize) -> usize {
    (65_487 / size).min(64)
}

fn bare_stream(size: usize) -> f64 {
    let ((client, back), (server, to)) = (bare_socket(), bare_socket());
    setsockopt(&server, UdpGroSegment, &true).unwrap();
    let to = SockaddrStorage::from(to);
    let stop = AtomicBool::new(false);
    let bytes = vec![7; per_send(size) * size];
    let expected = bytes.len();
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let mut buffer = vec![0; 1 << 16];
            let mut got = 0;
            while let Some((len, _)) = bare_receive(&server, &mut buffer, &stop) {
                got += len;
                if got == expected {
                    got = 0;
                    server.send_to(b"ack", back).unwrap();
                }
            }
        });
        let mut buffer = [0; 16];
        let never = AtomicBool::new(false);
        bare_send(&client, &bytes, size, &to);
        let median = round_trips(&mut || {
            // Two bursts are on their way at any time, so that both ends have work.
            bare_send(&client, &bytes, size, &to);
            bare_receive(&client, &mut buffer, &never).unwrap();
        });
        stop.store(true, Ordering::Relaxed);
        bytes.len() as f64 * 8e3 / median
    })
}

// ---- the driver ----

type Halves = (Box<dyn Transmit>, Box<dyn Receive>);

fn driver_socket() -> (Halves, SocketAddr) {
    let bind = SocketAddr::from(([127, 0, 0, 1], 0));
    let driver = Udp::open(&UdpConfig::bound_to(bind)).unwrap();
    let address = driver.local_addr();
    (Box::new(driver).split(), address)
}

fn driver_send(transmit: &mut dyn Transmit, to: SocketAddr, packet: &[u8]) {
    let (headers, payload) = packet.split_at(60);
    let burst = Burst {
        to,
        from: None,
        traffic_class: 0,
        headers,
        header_len: 60,
        payload: &[payload],
        segment: payload.len(),
    };
    transmit.send(&burst).unwrap();
}

/// Echoes what comes until it is told to stop.
fn driver_echo((transmit, receive): &mut Halves, stop: &AtomicBool) {
    loop {
        if receive.receive(64).unwrap() == 0 {
            receive.reports(&mut |report| panic!("{report:?}"));
            if stop.load(Ordering::Relaxed) {
                return;
            }
            continue;
        }
        receive.drain(&mut |arrival| driver_send(&mut **transmit, arrival.from, arrival.packet));
        transmit.flush().unwrap();
    }
}

/// Waits until `owed` is not above zero; every packet that comes makes it less.
fn driver_receive(receive: &mut dyn Receive, owed: &mut isize) {
    while *owed > 0 {
        if receive.receive(64).unwrap() > 0 {
            receive.drain(&mut |_| *owed -= 1);
        }
    }
}

/// Batches of `packets` there and back: ns for a single one, thousands of packets a second for more.
fn driver_pingpong(packets: usize) -> f64 {
    let ((mut client, _), (mut server, to)) = (driver_socket(), driver_socket());
    let stop = AtomicBool::new(false);
    let packet = [7; SMALL];
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            driver_echo(&mut server, &stop);
        });
        let median = round_trips(&mut || {
            for _ in 0..packets {
                driver_send(&mut *client.0, to, &packet);
            }
            client.0.flush().unwrap();
            driver_receive(&mut *client.1, &mut (packets as isize));
        });
        stop.store(true, Ordering::Relaxed);
        if packets == 1 { median } else { packets as f64 * 1e6 / median }
    })
}

/// 64 packets to several sockets of one thread, the peers mixed.
fn driver_peers(peers: usize) -> f64 {
    let (mut client, _) = driver_socket();
    let (servers, addresses): (Vec<_>, Vec<_>) = (0..peers).map(|_| driver_socket()).unzip();
    let stop = AtomicBool::new(false);
    let packet = [7; SMALL];
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            pin(1);
            let mut servers = servers;
            while !stop.load(Ordering::Relaxed) {
                for (transmit, receive) in &mut servers {
                    if receive.receive(64).unwrap() > 0 {
                        receive.drain(&mut |arrival| {
                            driver_send(&mut **transmit, arrival.from, arrival.packet);
                        });
                        transmit.flush().unwrap();
                    }
                }
            }
        });
        let median = round_trips(&mut || {
            for packet_number in 0..64 {
                driver_send(&mut *client.0, addresses[packet_number % peers], &packet);
            }
            client.0.flush().unwrap();
            driver_receive(&mut *client.1, &mut 64);
        });
        stop.store(true, Ordering::Relaxed);
        64.0 * 1e6 / median
    })
}

fn driver_stream(size: usize) -> f64 {
    let ((mut client, _), (mut server, to)) = (driver_socket(), driver_socket());
    let stop = AtomicBool::new(false);
    let packets = per_send(size);
    let (headers, payload) = (vec![7; packets * 60], vec![8; packets * (size - 60)]);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let (transmit, receive) = &mut server;
            let mut got = 0;
            while !stop.load(Ordering::Relaxed) {
                if receive.receive(64).unwrap() == 0 {
                    continue;
                }
                let mut from = None;
                receive.drain(&mut |arrival| {
                    got += 1;
                    from = Some(arrival.from);
                });
                if got >= packets {
                    got -= packets;
                    driver_send(&mut **transmit, from.unwrap(), &[7; 61]);
                    transmit.flush().unwrap();
                }
            }
        });
        let burst = Burst {
            to,
            from: None,
            traffic_class: 0,
            headers: &headers,
            header_len: 60,
            payload: &[&payload],
            segment: size - 60,
        };
        let mut send = || {
            client.0.send(&burst).unwrap();
            client.0.flush().unwrap();
        };
        send();
        let mut owed = 0;
        let median = round_trips(&mut || {
            send();
            owed += 1;
            driver_receive(&mut *client.1, &mut owed);
        });
        stop.store(true, Ordering::Relaxed);
        (packets * size) as f64 * 8e3 / median
    })
}

// ---- both ----

/// Median duration of one `exchange`, in ns.
fn round_trips(exchange: &mut dyn FnMut()) -> f64 {
    pin(0);
    let mut times = Vec::with_capacity(1 << 18);
    let began = Instant::now();
    while began.elapsed() < RUN && times.len() < times.capacity() {
        let start = Instant::now();
        exchange();
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Keeps this thread on one core; where that is not allowed, the figures are just noisier.
fn pin(core: usize) {
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(core);
    let _ = rustix::thread::sched_setaffinity(None, &cores);
}
