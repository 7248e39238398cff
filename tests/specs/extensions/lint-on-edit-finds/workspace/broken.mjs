const one = ;
