//! U1: packets come and go without a single allocation.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use apus_driver::{Burst, Driver, Receive, Transmit};
use apus_udp::{Udp, UdpConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn open(config: UdpConfig) -> (Box<dyn Transmit>, Box<dyn Receive>, SocketAddr) {
    let driver = Udp::open(&config).unwrap();
    let address = driver.local_addr();
    let (transmit, receive) = Box::new(driver).split();
    (transmit, receive, address)
}

/// Takes the next `count` packets.
fn collect(receive: &mut dyn Receive, count: usize) {
    let mut got = 0;
    while got < count {
        let fd = receive.as_fd();
        let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)), Ok(1));
        while receive.receive(64).unwrap() > 0 {
            receive.drain(&mut |arrival| got += usize::from(!arrival.packet.is_empty()));
        }
        receive.reports(&mut |report| panic!("{report:?}"));
    }
}

/// Bursts of all kinds, to several peers, in several classes; then waits for all of them.
fn work(config: UdpConfig) {
    let (mut transmit, mut receive, address) = open(config);
    let (mut others, addresses): (Vec<_>, Vec<_>) = (0..40)
        .map(|_| {
            let (transmit, receive, address) = open(config);
            ((transmit, receive), address)
        })
        .unzip();
    let bytes = vec![0; 1 << 17];
    let kinds = [(1, 100), (1, 3000), (1, 8000), (5, 100), (64, 30), (3, 1400), (9, 8500)];
    let mut round = || {
        for (number, (packets, len)) in kinds.into_iter().enumerate() {
            let payload = &bytes[..packets * (len - 28)];
            let (first, second) = payload.split_at(payload.len() / 3);
            transmit
                .send(&Burst {
                    to: address,
                    from: None,
                    traffic_class: if number % 2 == 0 { 0 } else { 0xb8 },
                    headers: &bytes[..packets * 28],
                    header_len: 28,
                    payload: &[first, second],
                    segment: len - 28,
                })
                .unwrap();
            transmit.flush().unwrap();
            collect(&mut *receive, packets);
        }
        for to in addresses.iter().copied() {
            transmit
                .send(&Burst {
                    to,
                    from: None,
                    traffic_class: 0,
                    headers: &bytes[..28],
                    header_len: 28,
                    payload: &[],
                    segment: 0,
                })
                .unwrap();
        }
        transmit.flush().unwrap();
        for (_, receive) in &mut others {
            collect(&mut **receive, 1);
        }
    };
    let counted = allocation_counter::measure(|| (0..20).for_each(|_| round()));
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

#[test]
fn packets_are_carried_without_allocations() {
    let bind = SocketAddr::from(([127, 0, 0, 1], 0));
    work(UdpConfig::bound_to(bind));
    work(UdpConfig { segmentation_offload: false, ..UdpConfig::bound_to(bind) });
    work(UdpConfig { receive_offload: false, ..UdpConfig::bound_to(bind) });
}
