//! The network: delays, losses, and calls that fail.

use std::net::SocketAddr;
use std::time::Duration;

use apus_fs_core::client::{ClientCall, ServerCallback};
use apus_fs_core::server::{CallToken, CallbackToken};
use apus_fs_core::wire::{Response, frame};
use bytes::Bytes;
use rand::RngExt;

use super::World;
use super::event::{Call, Callback, Event};

impl World {
    fn delay(&mut self) -> Duration {
        self.scenario.delay.mul_f64(0.1 + 0.9 * self.random.random::<f64>())
    }

    /// Time after which a transport gives up a call.
    pub(super) fn patience(&mut self) -> Duration {
        self.scenario.term.mul_f64(self.random.random_range(0.02..0.3))
    }

    /// Returns whether a message between the server and a client is lost.
    fn is_lost(&mut self, host: usize) -> bool {
        let is_cut = self.hosts[host].cut_until > self.now;
        let lost = self.scenario.lost_per_mille;
        let is_lost = is_cut || (!self.is_closing && self.random.random_range(0..1000) < lost);
        self.totals.lost += u64::from(is_lost);
        is_lost
    }

    /// Makes a call fail after a while.
    pub(super) fn fail_call(&mut self, call: u64) {
        let at = self.now + self.patience();
        self.schedule(at, Event::CallFailed { call });
    }

    /// Makes a callback fail after a while.
    pub(super) fn fail_callback(&mut self, callback: u64) {
        let at = self.now + self.patience();
        self.schedule(at, Event::CallbackFailed { callback });
    }

    pub(super) fn send_request(&mut self, host: usize, call: ClientCall, bytes: Bytes) {
        self.last += 1;
        let (id, mount) = (self.last, self.hosts[host].mount);
        self.calls.insert(id, Call { host, mount, call, at_server: None });
        if self.is_lost(host) {
            return self.fail_call(id);
        }
        let at = self.now + self.delay();
        self.schedule(at, Event::Request { call: id, bytes });
    }

    pub(super) fn send_response(&mut self, call: u64, bytes: Bytes) {
        let Some(found) = self.calls.get_mut(&call) else { return };
        found.at_server = None;
        let host = found.host;
        if self.is_lost(host) {
            return self.fail_call(call);
        }
        let at = self.now + self.delay();
        self.schedule(at, Event::Response { call, bytes });
    }

    pub(super) fn send_callback(
        &mut self,
        callback: CallbackToken,
        peer: SocketAddr,
        bytes: Bytes,
    ) {
        self.last += 1;
        let (id, life) = (self.last, self.server_life);
        let host = self.hosts.iter().position(|host| host.address == peer);
        let Some(host) = host else {
            self.callbacks.insert(
                id,
                Callback { host: 0, mount: crate::history::MountId(0), life, callback },
            );
            return self.fail_callback(id);
        };
        let mount = self.hosts[host].mount;
        self.callbacks.insert(id, Callback { host, mount, life, callback });
        if self.is_lost(host) || self.hosts[host].client.is_none() {
            return self.fail_callback(id);
        }
        let at = self.now + self.delay();
        self.schedule(at, Event::Callback { callback: id, bytes });
    }

    pub(super) fn send_answer(&mut self, callback: u64, bytes: Bytes) {
        let Some(Callback { host, .. }) = self.callbacks.get(&callback).copied() else { return };
        if self.is_lost(host) {
            return self.fail_callback(callback);
        }
        let at = self.now + self.delay();
        self.schedule(at, Event::Answer { callback, bytes });
    }

    pub(super) fn handle_message(&mut self, event: Event) {
        match event {
            Event::Request { call, bytes } => self.deliver_request(call, bytes),
            Event::Response { call, ref bytes } => {
                let Some(Call { host, mount, call: token, .. }) = self.calls.get(&call).copied()
                else {
                    return;
                };
                if self.hosts[host].cut_until > self.now {
                    return self.fail_call(call);
                }
                if self.hold(host, mount, &event) {
                    return;
                }
                self.calls.remove(&call);
                self.check_welcome(host, bytes);
                let bytes = bytes.clone();
                self.with_client(host, mount, &event, |client, clock| {
                    client.handle_response(clock, token, Some(bytes));
                });
            }
            Event::CallFailed { call } => {
                let Some(Call { host, mount, call: token, .. }) = self.calls.get(&call).copied()
                else {
                    return;
                };
                if self.hold(host, mount, &event) {
                    return;
                }
                self.calls.remove(&call);
                self.note(|| format!("{mount}: a call fails"));
                self.with_client(host, mount, &event, |client, clock| {
                    client.handle_response(clock, token, None);
                });
            }
            Event::Callback { callback, ref bytes } => {
                let Some(Callback { host, mount, .. }) = self.callbacks.get(&callback).copied()
                else {
                    return;
                };
                let is_down = self.hosts[host].mount != mount || self.hosts[host].client.is_none();
                if is_down || self.hosts[host].cut_until > self.now {
                    return self.fail_callback(callback);
                }
                if self.hold(host, mount, &event) {
                    return;
                }
                self.totals.callbacks += 1;
                let decoded = frame::decode::<apus_fs_core::wire::Callback>(bytes.clone());
                self.note(|| format!("{mount} receives {:?}", decoded.map(|call| call.message)));
                let bytes = bytes.clone();
                self.with_client(host, mount, &event, |client, clock| {
                    client.handle_callback(clock, ServerCallback(callback), bytes);
                });
            }
            Event::Answer { callback, bytes } => {
                let host = self.callbacks.get(&callback).map(|found| found.host);
                if host.is_some_and(|host| self.hosts[host].cut_until > self.now) {
                    return self.fail_callback(callback);
                }
                self.end_callback(callback, Some(bytes));
            }
            Event::CallbackFailed { callback } => self.end_callback(callback, None),
            _ => {}
        }
    }

    fn deliver_request(&mut self, call: u64, bytes: Bytes) {
        let Some(Call { host, mount, .. }) = self.calls.get(&call).copied() else { return };
        if self.hosts[host].cut_until > self.now || self.server.is_none() {
            return self.fail_call(call);
        }
        self.totals.requests += 1;
        self.hear(host);
        let decoded = frame::decode::<apus_fs_core::wire::Request>(bytes.clone());
        self.note(|| format!("server: {mount} sends {:?}", decoded.map(|call| call.message)));
        let local = self.server_clock.local(self.now);
        let address = self.hosts[host].address;
        let life = self.server_life;
        if let Some(found) = self.calls.get_mut(&call) {
            found.at_server = Some(life);
        }
        // The host's address now belongs to a later mount, so a request of an ended mount gets a
        // different one.
        let peer = if self.hosts[host].mount == mount {
            address
        } else {
            SocketAddr::from(([10, 0, 0, 1], mount.0 as u16))
        };
        if let Some(server) = &mut self.server {
            server.handle_request(local, peer, CallToken(call), bytes);
        }
        // The end of the burst: until then, a crash loses appended batches.
        let burst = Duration::from_micros(self.random.random_range(1..2_000));
        self.schedule(self.now + burst, Event::ServerWake { life });
        self.drain_server();
    }

    fn end_callback(&mut self, callback: u64, response: Option<Bytes>) {
        let Some(found) = self.callbacks.remove(&callback) else { return };
        if found.life != self.server_life {
            return;
        }
        let local = self.server_clock.local(self.now);
        if let Some(server) = &mut self.server {
            server.handle_callback_response(local, found.callback, response);
            let burst = Duration::from_micros(self.random.random_range(1..2_000));
            self.schedule(self.now + burst, Event::ServerWake { life: self.server_life });
        }
        self.drain_server();
    }

    /// Records that the server received a message from a client, or may have ended its session for
    /// lack of one.
    fn hear(&mut self, host: usize) {
        self.suspect_silent(host);
        self.hosts[host].heard = (self.now, self.recorder.moment());
    }

    /// Suspects that the session of a client has ended, if the server has received no message from
    /// it for a term.
    pub(super) fn suspect_silent(&mut self, host: usize) {
        let host = &mut self.hosts[host];
        let (heard, moment) = host.heard;
        if self.now - heard >= self.scenario.term.mul_f64(0.95) {
            host.suspect = host.suspect.or(Some(moment));
        }
    }

    /// Checks whether a message tells a client that its session has ended.
    fn check_welcome(&mut self, host: usize, bytes: &Bytes) {
        let Ok(decoded) = frame::decode::<Response>(bytes.clone()) else { return };
        let mount = self.hosts[host].mount;
        let message = decoded.message;
        if let Response::Welcome(welcome) = &message
            && let Some(since) = self.hosts[host].suspect.take()
            && !welcome.resumed
        {
            self.suspect(host, since);
        }
        self.note(|| format!("{mount} receives {message:?}"));
    }
}
