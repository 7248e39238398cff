console.log("there is nothing to join for");
