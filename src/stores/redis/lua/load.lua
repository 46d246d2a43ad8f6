-- Reads. ARGV[1]  names, bodies (ids of records), counts (indexes)
return { now, 0, look(asked.names), countsOf(asked.counts), bodiesOf(asked.bodies) }
