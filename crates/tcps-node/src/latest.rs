//! The newest values seen at a component, for hooks that look at more than their own sample.

use super::flow::side;
use tcps_core::ids::FlowId;
use tcps_plan::Direction;

/// Newest values, by direction and, where a hook asks for it, by flow.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// Of any flow of a direction.
    pub(super) sides: [Vec<f64>; 2],
    /// Of a flow; none before its first sample.
    flows: Vec<(FlowId, Vec<f64>)>,
}

impl Latest {
    /// Keeps the values of these flows apart from now on.
    pub(super) fn keep(&mut self, flows: &[FlowId]) {
        for flow in flows {
            if !self.flows.iter().any(|(kept, _)| kept == flow) {
                self.flows.push((*flow, Vec::new()));
            }
        }
    }

    /// A sample of a flow has come.
    pub(super) fn take(&mut self, side: usize, flow: FlowId, values: &[f64]) {
        let of_flow = self.flows.iter_mut().filter(|(kept, _)| *kept == flow).map(|(_, newest)| newest);
        for newest in of_flow.chain([&mut self.sides[side]]) {
            newest.clear();
            newest.extend_from_slice(values);
        }
    }

    /// What a hook on a way is told: the values of the flows that it names, or the newest of the other direction.
    pub(super) fn other<'a>(
        &'a self,
        direction: Direction,
        flows: &[FlowId],
        room: &'a mut Vec<f64>,
    ) -> &'a [f64] {
        match flows {
            [] => &self.sides[1 - side(direction)],
            _ => self.gather(flows, room),
        }
    }

    /// The values of these flows one after the other; nothing before each of them has come.
    pub(super) fn gather<'a>(&self, flows: &[FlowId], room: &'a mut Vec<f64>) -> &'a [f64] {
        room.clear();
        for flow in flows {
            match self.flows.iter().find(|(kept, newest)| kept == flow && !newest.is_empty()) {
                Some((_, newest)) => room.extend_from_slice(newest),
                None => return &[],
            }
        }
        room
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.sides.iter_mut().chain(self.flows.iter_mut().map(|(_, newest)| newest)).for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values are told in the order asked for, and never at wrong places because one of the flows has not come.
    #[test]
    fn flows_are_told_together_or_not_at_all() {
        let (mut latest, mut room) = (Latest::default(), Vec::new());
        latest.keep(&[FlowId(3), FlowId(1)]);
        latest.take(0, FlowId(1), &[10.0, 11.0]);
        assert!(latest.gather(&[FlowId(3), FlowId(1)], &mut room).is_empty(), "3 has not come");
        latest.take(1, FlowId(3), &[30.0]);
        latest.take(0, FlowId(7), &[70.0]);
        assert_eq!(latest.gather(&[FlowId(3), FlowId(1)], &mut room), [30.0, 10.0, 11.0]);
        assert_eq!(latest.sides, [vec![70.0], vec![30.0]], "the newest of any flow of a direction");
        latest.clear();
        assert!(latest.gather(&[FlowId(3)], &mut room).is_empty() && latest.sides[0].is_empty());
    }
}
