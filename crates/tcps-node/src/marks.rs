//! What samples leave behind at a node: rows, answers of echoes, newest values.

use super::{
    flow::{side, width},
    job::{decoded, Job},
    Node,
};
use crate::outside::Outside;
use tcps_core::{
    record::{DropReason, Kind, Record},
    sample::{Echo, EchoReply, Meta, PointId},
    time::Time,
};
use tcps_plan::Codec;
use tcps_wire::reply;

impl Node {
    /// A row of a sample at a point.
    pub(super) fn stamp<O: Outside>(
        &mut self,
        now: Time,
        kind: Kind,
        point: PointId,
        job: &Job,
        out: &mut O,
    ) {
        self.stamp_at(now, now, kind, point, job, out);
    }

    /// A row, written now, of a sample that was at a point at another moment.
    pub(super) fn stamp_at<O: Outside>(
        &mut self,
        now: Time,
        at: Time,
        kind: Kind,
        point: PointId,
        job: &Job,
        out: &mut O,
    ) {
        let origin = job.meta.origin_ns;
        let value = match kind {
            Kind::Sent => origin,
            // A sample has arrived when the kernel had its last byte, unless its transport held it back.
            Kind::Delivered => job.received_ns.unwrap_or(self.clock.read(at)).saturating_sub(origin),
            _ => self.clock.read(at).saturating_sub(origin),
        };
        let size = if job.coded {
            job.bytes.len()
        } else {
            job.values.len() * width(self.flows[job.flow as usize].codec)
        };
        let row = Record {
            value,
            index: job.meta.index,
            size: size as u32,
            flow: job.flow,
            point,
            node: self.id,
            ..Record::new(now, kind)
        };
        out.record(row);
    }

    /// A row of a sample that ends here.
    pub(super) fn drop_sample<O: Outside>(
        &mut self,
        now: Time,
        meta: &Meta,
        component: u16,
        why: DropReason,
        out: &mut O,
    ) {
        let value = self.clock.read(now).saturating_sub(meta.origin_ns);
        let (detail, node) = (why as u8, self.id);
        let row = Record {
            value,
            index: meta.index,
            flow: meta.flow,
            point: component,
            detail,
            node,
            ..Record::new(now, Kind::Dropped)
        };
        out.record(row);
    }

    /// A sample was replaced before its stage could use it, and with it the command on it.
    pub(super) fn superseded<O: Outside>(&mut self, now: Time, component: u16, old: &Job, out: &mut O) {
        let row = Record {
            index: old.meta.index,
            flow: old.flow,
            point: component,
            node: self.id,
            ..Record::new(now, Kind::Superseded)
        };
        out.record(row);
        if let Some(echo) = old.meta.echo {
            self.echo_superseded(now, old.flow, old.visit, echo, out);
        }
    }

    /// A newer sample or command took the place of one with a command that has not reached its point.
    // [design: echo commands]
    pub(super) fn echo_superseded<O: Outside>(
        &mut self,
        now: Time,
        flow: u16,
        visit: u16,
        echo: Echo,
        out: &mut O,
    ) {
        if !self.flows[flow as usize].is_ahead(visit, echo.target) {
            return;
        }
        let row = Record {
            value: self.clock.read(now).saturating_sub(echo.injected_ns),
            index: echo.sequence,
            flow,
            point: echo.target,
            node: self.id,
            ..Record::new(now, Kind::EchoSuperseded)
        };
        out.record(row);
    }

    /// Answers a command that is for this point.
    pub(super) fn check_echo<O: Outside>(&mut self, now: Time, point: PointId, job: &mut Job, out: &mut O) {
        self.check_echo_at(now, now, point, job, out);
    }

    /// Answers a command that is for this point, which the sample had reached at another moment.
    pub(super) fn check_echo_at<O: Outside>(
        &mut self,
        now: Time,
        at: Time,
        point: PointId,
        job: &mut Job,
        out: &mut O,
    ) {
        if let Some(echo) = job.meta.echo.filter(|e| e.target == point) {
            self.answer(now, at, job.flow, echo, out);
        }
    }

    /// Sends the answer of an echo command on its way, which was at its point at `at`.
    pub(super) fn answer<O: Outside>(&mut self, now: Time, at: Time, flow: u16, echo: Echo, out: &mut O) {
        let reached_ns = self.clock.read(at);
        let Echo { target, sequence, injected_ns, reply_to } = echo;
        let reply = EchoReply { point: target, flow, sequence, injected_ns, reached_ns };
        let mut bytes = Vec::with_capacity(32);
        reply::Repr(reply).emit(&mut bytes);
        if reply_to == self.id {
            self.handle_aside(now, self.id, now, &bytes, out);
        } else {
            out.aside(now, reply_to, &bytes);
        }
    }

    /// An answer has come home.
    pub(super) fn handle_reply<O: Outside>(&mut self, now: Time, received: Time, bytes: &[u8], out: &mut O) {
        if let Ok(packet) = reply::Packet::new_checked(bytes) {
            let (reply, at) = (reply::Repr::parse(&packet).0, self.clock.read(received));
            if usize::from(reply.flow) >= self.all_flows {
                return self.asides_refused += 1;
            }
            let row = |kind, value| Record {
                value,
                index: reply.sequence,
                flow: reply.flow,
                point: reply.point,
                node: self.id,
                ..Record::new(now, kind)
            };
            out.record(row(Kind::EchoForward, reply.reached_ns.saturating_sub(reply.injected_ns)));
            out.record(row(Kind::EchoReturn, at.saturating_sub(reply.reached_ns)));
            out.record(row(Kind::Echo, at.saturating_sub(reply.injected_ns)));
        } else {
            self.asides_refused += 1;
        }
    }

    /// Keeps the newest values seen at a component where a hook may want them.
    pub(super) fn remember(&mut self, component: u16, job: &mut Job) {
        let flow = &self.flows[job.flow as usize];
        // Bytes of a raw flow are values once a hook has decoded them.
        let known = flow.codec != Codec::Raw || job.decoded;
        let Some(latest) = self.latest[component as usize].as_mut().filter(|_| known) else { return };
        decoded(flow.codec, job);
        latest.take(side(flow.direction), job.flow, &job.values);
    }
}
