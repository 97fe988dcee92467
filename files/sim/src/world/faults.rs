//! Disturbances, and their end.

use std::time::Duration;

use rand::RngExt;

use super::World;
use super::event::Event;
use super::record::{Begun, record};
use crate::scenario::Fault;

impl World {
    pub(super) fn disturb(&mut self, event: &Event) {
        match *event {
            Event::Fault(_) if self.is_closing => {}
            Event::Fault(Fault::ServerCrash { down }) => self.crash_server(down),
            Event::Fault(Fault::ClientCrash { host, down }) => self.crash_client(host, down),
            Event::Fault(Fault::Partition { host, length }) => self.cut(host, length),
            Event::Fault(Fault::Pause { host, length }) => self.pause(host, length),
            Event::Fault(Fault::Full { records }) => self.fill_store(records),
            Event::ServerStart if self.server.is_none() => self.start_server(true),
            Event::ClientStart { host } if self.hosts[host].client.is_none() => {
                self.start_client(host);
            }
            Event::Resume { host, mount } if self.hosts[host].mount == mount => self.resume(host),
            Event::Closing => self.close(),
            _ => {}
        }
    }

    fn fill_store(&mut self, records: u64) {
        self.note(|| format!("the store is full after {records} records"));
        if let Some(server) = &mut self.server {
            server.store_mut().fail_record_after(records);
        }
    }

    fn crash_server(&mut self, down: Duration) {
        let Some(server) = self.server.take() else { return };
        self.note(|| format!("the server crashes for {down:?}"));
        self.totals.crashes += 1;
        for host in 0..self.hosts.len() {
            self.suspect_silent(host);
        }
        self.store = server.into_store();
        let appended = self.store.appended();
        self.store.crash(self.random.random_range(0..=appended));
        let lost: Vec<u64> = self
            .calls
            .iter()
            .filter(|(_, call)| call.at_server.is_some())
            .map(|(id, _)| *id)
            .collect();
        for call in lost {
            self.fail_call(call);
        }
        self.callbacks.clear();
        self.schedule(self.now + down, Event::ServerStart);
    }

    fn crash_client(&mut self, host: usize, down: Duration) {
        if self.hosts[host].client.take().is_none() {
            return;
        }
        let mount = self.hosts[host].mount;
        self.note(|| format!("{mount} crashes for {down:?}"));
        self.totals.crashes += 1;
        for application in &mut self.hosts[host].applications {
            if let Some(current) = application.current.take()
                && !application.is_private(&current.intent)
            {
                let begun = Begun { mount, invoked: current.invoked, returned: None };
                record(&mut self.recorder, begun, &current.intent, None);
            }
        }
        let at = self.recorder.moment();
        // If the server had no message from it for a term, its changes may have been lost before,
        // unknown to the client.
        self.suspect_silent(host);
        let since = self.hosts[host].suspect.take().unwrap_or(at);
        self.recorder.lose(mount, since, Some(at));
        self.calls.retain(|_, call| call.mount != mount || call.at_server.is_some());
        self.schedule(self.now + down, Event::ClientStart { host });
    }

    fn cut(&mut self, host: usize, length: Duration) {
        let mount = self.hosts[host].mount;
        self.note(|| format!("{mount} is cut off for {length:?}"));
        let until = self.now + length;
        self.hosts[host].cut_until = self.hosts[host].cut_until.max(until);
        let calls = self.calls.iter().filter(|(_, call)| call.host == host);
        for call in calls.map(|(id, _)| *id).collect::<Vec<_>>() {
            let patience = self.patience();
            if patience < length {
                self.schedule(self.now + patience, Event::CallFailed { call });
            }
        }
        let callbacks = self.callbacks.iter().filter(|(_, callback)| callback.host == host);
        for callback in callbacks.map(|(id, _)| *id).collect::<Vec<_>>() {
            let patience = self.patience();
            if patience < length {
                self.schedule(self.now + patience, Event::CallbackFailed { callback });
            }
        }
    }

    fn pause(&mut self, host: usize, length: Duration) {
        let machine = &mut self.hosts[host];
        if machine.client.is_none() || machine.paused_until.is_some() {
            return;
        }
        let mount = machine.mount;
        let until = self.now + length;
        machine.paused_until = Some(until);
        self.note(|| format!("{mount} pauses for {length:?}"));
        self.schedule(until, Event::Resume { host, mount });
    }

    fn resume(&mut self, host: usize) {
        let machine = &mut self.hosts[host];
        let mount = machine.mount;
        if machine.paused_until.take().is_none() {
            return;
        }
        machine.wake_at = Some(self.now);
        for event in std::mem::take(&mut machine.held) {
            self.schedule(self.now, event);
        }
        self.note(|| format!("{mount} goes on"));
        self.schedule(self.now, Event::ClientWake { host, mount });
    }

    /// Ends all disturbances and makes applications finish.
    fn close(&mut self) {
        self.is_closing = true;
        self.note(|| "the world is healed".to_owned());
        if self.server.is_none() {
            self.start_server(true);
        }
        for host in 0..self.hosts.len() {
            self.hosts[host].cut_until = self.now;
            self.resume(host);
            let mount = self.hosts[host].mount;
            for thread in 0..self.hosts[host].applications.len() {
                self.schedule(self.now, Event::Application { host, mount, thread });
            }
        }
    }
}
