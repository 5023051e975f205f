//! What samples leave behind at a node: rows, and answers of echoes.

use super::{context::Context, flow::width, job::Job};
use crate::host::Host;
use tcps_core::{
    ids::{ComponentId, FlowId},
    record::{DropReason, Kind, Record},
    sample::{Echo, EchoReply, Meta, PointId},
    time::Time,
};
use tcps_wire::reply;

impl<O: Host> Context<'_, O> {
    /// A row of a sample at a point, or at a component, by kind.
    pub(super) fn stamp(&mut self, now: Time, kind: Kind, point: u16, job: &Job) {
        self.stamp_at(now, now, kind, point, job);
    }

    /// The same, written now, of a sample that was there at another moment.
    pub(super) fn stamp_at(&mut self, now: Time, at: Time, kind: Kind, point: u16, job: &Job) {
        let origin = job.meta.origin_ns;
        let value = match kind {
            Kind::Sent => origin,
            // A sample has arrived when the kernel had its last byte, unless its transport held it back.
            Kind::Delivered => job.received_ns.unwrap_or(self.read(at)).saturating_sub(origin),
            _ => self.read(at).saturating_sub(origin),
        };
        let size = if job.coded { job.bytes.len() } else { job.values.len() * width(job.codec) };
        let row = Record {
            value,
            index: job.meta.index,
            size: size as u32,
            flow: job.flow,
            point,
            node: self.here.id,
            ..Record::new(now, kind)
        };
        self.out.record(row);
    }

    /// A row of a sample that ends here.
    pub(super) fn drop_sample(&mut self, now: Time, meta: &Meta, component: ComponentId, why: DropReason) {
        let value = self.read(now).saturating_sub(meta.origin_ns);
        let (detail, node) = (why as u8, self.here.id);
        let row = Record {
            value,
            index: meta.index,
            flow: meta.flow,
            point: component.0,
            detail,
            node,
            ..Record::new(now, Kind::Dropped)
        };
        self.out.record(row);
    }

    /// A newer sample or command took the place of one with a command that has not reached its point.
    // [design: echo commands]
    pub(super) fn echo_superseded(&mut self, now: Time, flow: FlowId, echo: Echo) {
        let row = Record {
            value: self.read(now).saturating_sub(echo.injected_ns),
            index: echo.sequence,
            flow,
            point: echo.target.0,
            node: self.here.id,
            ..Record::new(now, Kind::EchoSuperseded)
        };
        self.out.record(row);
    }

    /// Answers a command that is for this point.
    pub(super) fn check_echo(&mut self, now: Time, point: PointId, job: &mut Job) {
        self.check_echo_at(now, now, point, job);
    }

    /// Answers a command that is for this point, which the sample had reached at another moment.
    pub(super) fn check_echo_at(&mut self, now: Time, at: Time, point: PointId, job: &mut Job) {
        if let Some(echo) = job.meta.echo.filter(|e| e.target == point) {
            self.answer(now, at, job.flow, echo);
        }
    }

    /// Sends the answer of an echo command on its way, which was at its point at `at`.
    pub(super) fn answer(&mut self, now: Time, at: Time, flow: FlowId, echo: Echo) {
        let reached_ns = self.read(at);
        let Echo { target, sequence, injected_ns, reply_to } = echo;
        let reply = EchoReply { point: target, flow, sequence, injected_ns, reached_ns };
        let mut bytes = Vec::with_capacity(32);
        reply::Repr(reply).emit(&mut bytes);
        if reply_to == self.here.id {
            self.handle_reply(now, now, &bytes);
        } else {
            self.asides.send(now, reply_to, Some(flow), &bytes, self.out);
        }
    }

    /// An answer has come home; false if it is none.
    pub(super) fn handle_reply(&mut self, now: Time, received: Time, bytes: &[u8]) -> bool {
        let Ok(reply::Repr(reply)) = reply::Repr::parse(bytes) else { return false };
        let at = self.read(received);
        if usize::from(reply.flow) >= self.here.flows {
            return false;
        }
        let row = |kind, value| Record {
            value,
            index: reply.sequence,
            flow: reply.flow,
            point: reply.point.0,
            node: self.here.id,
            ..Record::new(now, kind)
        };
        self.out.record(row(Kind::EchoForward, reply.reached_ns.saturating_sub(reply.injected_ns)));
        self.out.record(row(Kind::EchoReturn, at.saturating_sub(reply.reached_ns)));
        self.out.record(row(Kind::Echo, at.saturating_sub(reply.injected_ns)));
        true
    }

    /// A sample that no stage holds ends at a component.
    pub(super) fn lose(&mut self, now: Time, job: Box<Job>, component: ComponentId, why: DropReason) {
        self.drop_sample(now, &job.meta, component, why);
        self.recycle(job);
    }
}
