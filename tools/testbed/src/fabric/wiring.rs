//! How are hosts and switch connected?

use std::fmt::Write;
use std::thread;

use super::layout::{INTERFACE, Layout};
use super::tool::Tool;
use crate::error::Error;

/// Threads that set hosts up at the same time. Ours: what these programs do in the kernel is mostly
/// serialised, what they do before is not.
const AT_THE_SAME_TIME: usize = 8;

/// Connects every host with the switch, and tells everybody where everybody is.
pub(super) fn connect(layout: &Layout) -> Result<(), Error> {
    layout.in_switch(Tool::Ip, &["-batch", "-"], &switch(layout))?;
    layout.in_switch(Tool::Bridge, &["-batch", "-"], &places(layout))?;
    every_host(layout, |node| {
        layout.in_host(node, Tool::Ip, &["-batch", "-"], &host(layout, node)).map(drop)
    })
}

/// Does something about every host, for several at a time; the first error.
pub(super) fn every_host(
    layout: &Layout,
    job: impl Fn(usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let (nodes, job) = (layout.hosts.len(), &job);
    thread::scope(|scope| {
        let share = |first| (first..nodes).step_by(AT_THE_SAME_TIME).try_for_each(job);
        let threads: Vec<_> = (0..nodes.min(AT_THE_SAME_TIME))
            .map(|first| scope.spawn(move || share(first)))
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a job does not panic"))
    })
}

/// For `ip`: the switch and its cables.
///
/// `promisc on` is what keeps the switch honest. Linux remembers which socket a packet comes from until the
/// packet arrives, and charges it to that socket's send buffer meanwhile: a sender would feel how long
/// the queues in the *switch* are (TCP keeps its own queue short by it, UDP is told to wait), which no
/// sender of a real network does. A bridge that listens itself forwards copies, which are charged to
/// nobody, and lets go of the original at once; the payload is not copied.
///
/// `gso_max_segs 1` means that nothing leaves through this interface that a wire would not carry: the
/// kernel cuts long sends at the latest there, and TCP does not even make them.
fn switch(layout: &Layout) -> String {
    let mtu = layout.spec.mtu;
    let mut lines = String::from("link set lo up\n");
    // Nothing but what is configured here: no spanning tree, no multicast snooping, no addresses.
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

/// For `bridge`: behind which port every host is.
fn places(layout: &Layout) -> String {
    let mut lines = String::new();
    for node in 0..layout.hosts.len() {
        let (port, address) = (Layout::port(node), layout.ethernet(node));
        line(&mut lines, format_args!("link set dev {port} learning off flood off"));
        line(&mut lines, format_args!("fdb add {address} dev {port} master static"));
    }
    lines
}

/// For `ip`: a host and its neighbours.
fn host(layout: &Layout, node: usize) -> String {
    let mut lines = String::from("link set lo up\n");
    // Without an address of its own making, IPv6 has nobody to talk to: the network stays silent.
    line(&mut lines, format_args!("link set dev {INTERFACE} addrgenmode none up"));
    let (v4, v6) = (layout.address(node), layout.address_v6(node));
    line(&mut lines, format_args!("address add {v4}/24 dev {INTERFACE}"));
    line(&mut lines, format_args!("address add {v6}/64 dev {INTERFACE} nodad"));
    for other in (0..layout.hosts.len()).filter(|other| *other != node) {
        let ethernet = layout.ethernet(other);
        let (v4, v6) = (layout.address(other), layout.address_v6(other));
        for address in [&v4 as &dyn std::fmt::Display, &v6] {
            line(
                &mut lines,
                format_args!(
                    "neighbour add {address} lladdr {ethernet} dev {INTERFACE} nud permanent"
                ),
            );
        }
    }
    lines
}

/// Adds a line to what a program is to be told.
pub(super) fn line(lines: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(lines, "{line}").expect("memory takes all that is written");
}
