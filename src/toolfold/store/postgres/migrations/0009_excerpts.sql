-- What is read of a tool together with a request: numbers, of the model that made the row. A row of
-- an earlier version has none: it is found as before, and read once the tool is pushed again.
alter table toolfold.tools add column excerpt bytea;
