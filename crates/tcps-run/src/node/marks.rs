//! What samples leave behind at a node: rows, answers of echoes, newest values.

use super::{
    flow::{side, width},
    job::{decoded, Job},
    Node,
};
use crate::{outside::Outside, plan::Codec};
use tcps_core::{
    record::{DropReason, Kind, Record},
    sample::{Echo, EchoReply, Meta, PointId},
    time::Time,
};
use tcps_wire::reply;

impl Node {
    pub(super) fn stamp<O: Outside>(
        &mut self,
        now: Time,
        kind: Kind,
        point: PointId,
        job: &Job,
        out: &mut O,
    ) {
        let origin = job.meta.origin_ns;
        let value = if kind == Kind::Sent { origin } else { self.clock.read(now).saturating_sub(origin) };
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

    pub(super) fn check_echo<O: Outside>(&mut self, now: Time, point: PointId, job: &mut Job, out: &mut O) {
        if let Some(echo) = job.meta.echo.filter(|e| e.target == point) {
            self.answer(now, job.flow, echo, out);
        }
    }

    /// Sends the answer of an echo command on its way.
    pub(super) fn answer<O: Outside>(&mut self, now: Time, flow: u16, echo: Echo, out: &mut O) {
        let reached_ns = self.clock.read(now);
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

    pub(super) fn handle_reply<O: Outside>(&mut self, now: Time, received: Time, bytes: &[u8], out: &mut O) {
        if let Ok(packet) = reply::Packet::new_checked(bytes) {
            let (reply, at) = (reply::Repr::parse(&packet).0, self.clock.read(received));
            if usize::from(reply.flow) >= self.flows.len() {
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
        let Some(latest) = self.latest[component as usize].as_mut().filter(|_| flow.codec != Codec::Raw)
        else {
            return;
        };
        decoded(flow.codec, job);
        let values = &mut latest[side(flow.direction)];
        values.clear();
        values.extend_from_slice(&job.values);
    }
}
