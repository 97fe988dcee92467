//! Commands that connect the hosts with the switch.

use std::fmt::Write;
use std::thread;

use super::layout::{INTERFACE, Layout};
use super::tool::Tool;
use apus_measure::error::Error;

/// Threads that configure hosts in parallel. Chosen by us: the kernel serialises most of the work
/// of these programs, but not their startup.
const PARALLEL_HOSTS: usize = 8;

/// Connects every host with the switch, and configures all addresses in the switch and the hosts.
pub(super) fn connect(layout: &Layout) -> Result<(), Error> {
    layout.in_switch(Tool::Ip, &["-batch", "-"], &switch(layout))?;
    layout.in_switch(Tool::Bridge, &["-batch", "-"], &forwarding_table(layout))?;
    every_host(layout, |node| {
        layout.in_host(node, Tool::Ip, &["-batch", "-"], &host(layout, node)).map(drop)
    })
}

/// Runs `job` for every host, several hosts in parallel. Returns the first error.
pub(super) fn every_host(
    layout: &Layout,
    job: impl Fn(usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let (nodes, job) = (layout.hosts.len(), &job);
    thread::scope(|scope| {
        let share = |first| (first..nodes).step_by(PARALLEL_HOSTS).try_for_each(job);
        let threads: Vec<_> =
            (0..nodes.min(PARALLEL_HOSTS)).map(|first| scope.spawn(move || share(first))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a job does not panic"))
    })
}

/// Returns the `ip` commands for the switch and its links.
///
/// `promisc on` hides the switch's queues from senders. Linux charges a packet to its socket's send
/// buffer until the packet arrives, so the queues in the *switch* would throttle senders (TCP would
/// keep its queue short, UDP sends would block), unlike in a real network. A bridge in promiscuous
/// mode forwards copies, which are not charged to a socket, and frees the original immediately; the
/// payload is not copied.
///
/// `gso_max_segs 1` ensures that only packets that a wire would carry leave through this interface:
/// the kernel splits long sends there at the latest, and TCP creates none.
fn switch(layout: &Layout) -> String {
    let mtu = layout.spec.mtu;
    let mut lines = String::from("link set lo up\n");
    // Static configuration only: no spanning tree, no multicast snooping, no addresses.
    let bridge = "stp_state 0 forward_delay 0 mcast_snooping 0 ageing_time 0";
    line(&mut lines, format_args!("link add name br0 mtu {mtu} type bridge {bridge}"));
    line(&mut lines, format_args!("link set dev br0 addrgenmode none promisc on up"));
    for (node, holder) in layout.hosts.iter().enumerate() {
        let (port, address) = (Layout::port(node), layout.ethernet(node));
        line(
            &mut lines,
            format_args!(
                "link add name {port} mtu {mtu} gso_max_segs 1 type veth peer name {INTERFACE} \
                 mtu {mtu} gso_max_segs 1 address {address} netns {}",
                holder.pid
            ),
        );
        line(&mut lines, format_args!("link set dev {port} master br0 addrgenmode none up"));
    }
    lines
}

/// Returns the `bridge` commands that map each host to its port.
fn forwarding_table(layout: &Layout) -> String {
    let mut lines = String::new();
    for node in 0..layout.hosts.len() {
        let (port, address) = (Layout::port(node), layout.ethernet(node));
        line(&mut lines, format_args!("link set dev {port} learning off flood off"));
        line(&mut lines, format_args!("fdb add {address} dev {port} master static"));
    }
    lines
}

/// Returns the `ip` commands for a host and its neighbour entries.
fn host(layout: &Layout, node: usize) -> String {
    let mut lines = String::from("link set lo up\n");
    // Without an IPv6 address, the interface sends no unsolicited packets.
    line(&mut lines, format_args!("link set dev {INTERFACE} addrgenmode none up"));
    let (v4, v6) = (layout.address(node), layout.address_v6(node));
    line(&mut lines, format_args!("address add {v4}/24 dev {INTERFACE}"));
    line(&mut lines, format_args!("address add {v6}/64 dev {INTERFACE} nodad"));
    lines += &neighbours(layout, node);
    lines
}

/// Returns the `ip` commands that configure the Ethernet addresses of a host's neighbours.
fn neighbours(layout: &Layout, node: usize) -> String {
    let mut lines = String::new();
    for other in (0..layout.hosts.len()).filter(|other| *other != node) {
        let ethernet = layout.ethernet(other);
        let (v4, v6) = (layout.address(other), layout.address_v6(other));
        for address in [&v4 as &dyn std::fmt::Display, &v6] {
            line(
                &mut lines,
                format_args!(
                    "neighbour replace {address} lladdr {ethernet} dev {INTERFACE} nud permanent"
                ),
            );
        }
    }
    lines
}

/// Returns the `ip` commands that take a host's link down, or up again. The kernel drops the
/// neighbours of a link that is down; if ARP had to find them, the network would recover a second
/// after the link.
pub(super) fn link(layout: &Layout, node: usize, up: bool) -> String {
    if up {
        format!("link set dev {INTERFACE} up\n{}", neighbours(layout, node))
    } else {
        format!("link set dev {INTERFACE} down\n")
    }
}

/// Appends a command line.
pub(super) fn line(lines: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(lines, "{line}").expect("memory takes all that is written");
}
